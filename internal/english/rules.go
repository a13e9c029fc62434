package english

import "strings"

var (
	// pronouns are the words that stand for a noun in the clauses that Clause reports.
	pronouns = set("who what whoever whatever who's what's")

	// asking are the verbs, and a few nouns, with which an indirect question is plain English:
	// "says who is missing", "look at what it returned".
	asking = set(`say says said saying tell tells told telling show shows shown showed showing see sees seen saw
		know knows known knew knowing decide decides decided find finds found ask asks asked asking learn learns
		learned hear hears heard print prints printed check checks checked checking compare compares compared
		explain explains explained list lists listed describe describes described state states stated predict
		predicts predicted choose chooses chosen chose depend depends depending matter matters wonder guess guesses
		remember remembers record records recorded understand understands determine determines determined
		question questions look looks judge judges regardless name names named document documents documented`)

	// openers are words after which a pronoun begins a clause of its own. After a noun "who" begins
	// a relative clause, and after most verbs "what" is common in technical English.
	openers = union(prepositions, set(`is are was were be been being isn't aren't
		and or but nor so because since if when while that unless whether though although where then`))

	prepositions = set(`of to by from for with than as in on at over about into without between after before behind
		beyond per like except against under through until upon within despite beside`)

	// adverbs may stand between an opener and its pronoun.
	adverbs = set("only just exactly not also even still always now mostly all")

	// determiners begin the noun in "whatever the order", which stands beside a clause.
	determiners = set("the its their his this these")

	// unfinished are words with which the comment of a field goes on from something else.
	unfinished = set(`and or but nor so then which whose that also too likewise ditto it they he them these those while
		of than because since`)

	// dangling are words with which a comment does not end.
	dangling = set("and or but of with the a an which that")
)

// clauses returns the clauses that have "who" or "what" in place of a noun. Questions, indirect
// questions, infinitives ("what to open") and "whatever the order" are not among them.
func clauses(words []word) []Finding {
	var found []Finding
	asked, start := false, true
	for i, w := range words {
		if w.open || start {
			asked, start = false, true
		}
		if pronouns[w.low] && !asked && !isQuestion(words[i:]) && begins(words, i, start) {
			found = append(found, Finding{w.line, Clause, around(words, i)})
		}
		asked = asked || asking[w.low]
		start = w.end != 0 && w.end != ','
	}
	return found
}

// begins tells whether the pronoun at i begins a clause that takes the place of a noun. start
// says that it is the first word after a full stop, colon, semicolon or bracket.
func begins(words []word, i int, start bool) bool {
	low, next := words[i].low, ""
	if i+1 < len(words) {
		next = words[i+1].low
	}
	if next == "to" || low == "whatever" && determiners[next] {
		return false
	}
	for j := i - 1; j >= 0 && !start; j-- {
		before := words[j]
		if before.end == ',' {
			return strings.HasPrefix(low, "what")
		}
		if !adverbs[before.low] {
			return low == "whoever" || openers[before.low]
		}
	}
	return true
}

// isQuestion tells whether the sentence that goes on with words ends with a question mark.
func isQuestion(words []word) bool {
	for _, w := range words {
		if w.end != 0 && w.end != ',' {
			return w.end == '?'
		}
	}
	return false
}

// field returns a finding if the comment of a struct field is not complete in itself.
func field(words []word) []Finding {
	if len(words) == 0 {
		return nil
	}
	first, last := words[0], words[len(words)-1]
	next := ""
	if len(words) > 1 {
		next = words[1].low
	}
	switch {
	case unfinished[first.low], first.low == "", first.low == "the" && next == "same", first.low == "as" && next == "above",
		last.end == ',', last.end == ';', last.end == ':', dangling[last.low] && last.end == 0:
		return []Finding{{first.line, Field, around(words, 0)}}
	}
	return nil
}

// notVerbs has words that show that the name before them is used as an ordinary word of the text.
var notVerbs = set("a an are at for from in of on or the to with")

// doc returns a finding if the doc comment of a function does not begin with its name and a verb.
func doc(function string, words []word) []Finding {
	if len(words) == 0 || len(words) > 1 && words[0].raw == function && !notVerbs[words[1].low] {
		return nil
	}
	return []Finding{{words[0].line, Doc, around(words, 0) + " (function " + function + ")"}}
}

// phrase is a word or phrase that the tree does not use.
type phrase struct {
	words []string // the phrase, in lower case
	write string   // the plain equivalent
	where place    // the texts in which it is not used
}

type place int

const (
	anywhere place = iota
	inErrors       // only in literals that users may read
	asNoun         // only after a preposition, or where punctuation follows
)

var badPhrases = func() map[string][]phrase {
	byFirst := map[string][]phrase{}
	add := func(where place, write string, forms ...string) {
		for _, form := range forms {
			words := strings.Fields(form)
			byFirst[words[0]] = append(byFirst[words[0]], phrase{words, write, where})
		}
	}
	add(anywhere, "fix or repair", "mend", "mends", "mended", "mending")
	add(anywhere, "again or a new one", "anew")
	add(anywhere, "also or apart from", "besides")
	add(anywhere, "drop or ignore", "forgive", "forgives", "forgiven")
	add(anywhere, "remove or forget", "bury", "buries", "buried")
	add(inErrors, "X is not supported, or no X was found", "there is none", "there are none")
	add(asNoun, "the noun", "that one")
	return byFirst
}()

// phrases returns the places with words that have a plain equivalent. literal says that the words
// come from a literal of the program.
func phrases(words []word, literal bool) []Finding {
	var found []Finding
	for i, w := range words {
		for _, p := range badPhrases[w.low] {
			if !matches(words[i:], p.words) || p.where == inErrors && !literal {
				continue
			}
			if p.where == asNoun && words[i+len(p.words)-1].end == 0 && !(i > 0 && prepositions[words[i-1].low]) {
				continue
			}
			found = append(found, Finding{w.line, Word, around(words, i) + " (write: " + p.write + ")"})
		}
	}
	return found
}

// matches tells whether words begin with the words of a phrase, with no punctuation inside.
func matches(words []word, phrase []string) bool {
	if len(words) < len(phrase) {
		return false
	}
	for i, p := range phrase {
		if words[i].low != p || i+1 < len(phrase) && words[i].end != 0 {
			return false
		}
	}
	return true
}

// badNames are identifiers of Go that do not say what they stand for. The values say what a good
// name would.
var badNames = func() map[string]string {
	byName := map[string]string{}
	add := func(hint string, names ...string) {
		for _, name := range names {
			byName[name] = hint
		}
	}
	add("name the thing or the action", "perhapsAll", "anew", "instead", "notThere", "notComing", "goOn", "far", "bury",
		"knew", "besides", "byWay", "hopeless", "forgive")
	add("name the state", "Met", "Gone", "Left", "reborn")
	add("name the fact that the flag holds", "said", "heard", "theirs", "told", "lacks")
	add("state the behaviour", "TestSaidOnce", "TestWhy", "TestOpened", "TestMayIdle")
	return byName
}()
