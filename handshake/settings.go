package handshake

import (
	"math/big"
	"strings"
)

// These are words of a Join's settings that forwarders read. A word that is missing has its
// default.
const (
	// SettingOnLoss is "continue" in a job that goes on when a cluster is lost; by default the job
	// ends.
	SettingOnLoss = "ZIPPER_ON_LOSS"
	// SettingQuorum is "both" in a job in which each side of a cut between forwarders goes on; by
	// default only the side with the first cluster that is not lost does.
	SettingQuorum = "ZIPPER_QUORUM"
	// settingLost is a bit set, in hexadecimal digits, of the clusters that the process knows to be
	// lost, by their index in the layout. Only Joins of processes that reconnect have this word. It
	// is the one word that may differ between the Joins of a job.
	settingLost = "LOST"
)

// Setting returns the value of the word NAME=VALUE in the settings of a Join, or an empty string if
// they have no such word.
func Setting(settings, name string) string {
	for word := range strings.FieldsSeq(settings) {
		if value, ok := strings.CutPrefix(word, name+"="); ok {
			return value
		}
	}
	return ""
}

// withLost returns settings to which a word is added that names lost clusters, or settings if there
// are none.
func withLost(settings string, lost []int) string {
	if len(lost) == 0 {
		return settings
	}
	var set big.Int
	for _, c := range lost {
		set.SetBit(&set, c, 1)
	}
	return settings + lostMark + set.Text(16)
}

// Lost returns the clusters that settings name as lost, in ascending order, or none if the word is
// malformed.
func Lost(settings string) (lost []int) {
	set, ok := new(big.Int).SetString(Setting(settings, settingLost), 16)
	if !ok || set.Sign() < 0 {
		return nil
	}
	for c := range set.BitLen() {
		if set.Bit(c) == 1 {
			lost = append(lost, c)
		}
	}
	return lost
}

// common returns the part of settings that must be equal in all Joins of a job.
func common(settings string) string {
	settings, _, _ = strings.Cut(settings, lostMark)
	return settings
}

// lostMark begins the word that withLost adds, which is the last one.
const lostMark = " " + settingLost + "="
