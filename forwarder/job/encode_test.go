package job

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Two states of a forwarder are one if nothing can follow in one that cannot follow in the other.
// So the encoding of a state names a connection by its two ends: its number depends on the order in
// which connections were opened. Fields that later events do not depend on, or that are the same in
// all states of an arrangement, are left out (unused).

// encode returns the encoding of a forwarder's state. It is valid until the next call.
func (m *model) encode(z *forwarder) []byte {
	e := &encoder{seen: map[uintptr]int{}, names: map[action.Conn]int64{0: 0}, refers: map[action.Conn]bool{},
		out: m.code.out[:0]}
	e.number(int64(z.index))
	if z.shell != nil {
		for n, c := range z.conns {
			e.names[c] = int64(n)
		}
		// the connections of the job end, by any way to that state
		if state := z.job.State(); state >= Ending {
			e.number(-1 - int64(state))
			e.value(reflect.ValueOf(z.job.ranks.members))
		} else {
			e.running = state == Running
			e.value(reflect.ValueOf(z.job).Elem())
		}
		e.value(reflect.ValueOf(z.shell.ends))
		e.value(reflect.ValueOf(z.timers))
		e.value(reflect.ValueOf(z.dials))
		e.number(int64(len(z.shell.asked)))
		e.number(int64(len(z.shell.open)))
	}
	m.code.out, m.refers = e.out, e.refers
	return e.out
}

// encoder writes values. It writes the target of each pointer once.
type encoder struct {
	out   []byte
	seen  map[uintptr]int
	names map[action.Conn]int64
	key   bool // key says that the key of a map is written.
	// refers has the connections that are written other than as keys.
	refers map[action.Conn]bool

	running bool // running says that the forwarder's job runs.
}

// unused are the fields, by type, that are the same in all worlds, or that later events do not
// depend on: texts for people, counters that are only shown, and times, since the model orders
// events by itself.
var unused = map[string]bool{"core.out": true, "end.code": true, "core.now": true, "core.cfg": true, "core.id": true,
	"core.clusters": true, "ranks.layout": true, "links.tree": true, "core.Config": true, "core.wrong": true,
	"gathering.soon": true, "gathering.notified": true, "ranks.statesSent": true, "ranks.hosts": true,
	"ranks.namesakes": true, "ranks.clusterOf": true, "ranks.via": true, "losses.lost": true,
	"losses.badFrames": true, "connections.lost": true, "gaps.failures": true, "exchanged.notices": true, "place.link": true,
	"place.instance": true, "member.link": true, "wait.reason": true, "IllegalError": true,
	"Death.Reason": true, "Lost.Number": true, "Lost.Epoch": true, "Lost.Reason": true}

// usedField is a field that is encoded.
type usedField struct {
	index  int
	reason bool // reason says that the field is a reason.
}

// used caches usedFields.
var used byType[[]usedField]

// usedFields returns the fields of a struct that are encoded.
func usedFields(t reflect.Type) []usedField {
	return used.of(t, func(t reflect.Type) (list []usedField) {
		for i := range t.NumField() {
			if name := t.Field(i).Name; !unused[t.Name()+"."+name] {
				list = append(list, usedField{i, name == "reason"})
			}
		}
		return list
	})
}

func (e *encoder) number(n int64) {
	for n < -64 || n > 63 {
		e.out = append(e.out, byte(n)|0x80)
		n >>= 7
	}
	e.out = append(e.out, byte(n)&0x7f)
}

func (e *encoder) text(s string) {
	e.number(int64(len(s)))
	e.out = append(e.out, s...)
}

// reason writes what later events depend on in a reason: whether there is one, and is that of a
// link that was opened again.
func (e *encoder) reason(s string) {
	switch s {
	case "":
		e.number(0)
	case openedAgain:
		e.number(1)
	default:
		e.number(2)
	}
}

func (e *encoder) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		e.pointer(v)
	case reflect.Struct:
		t := v.Type()
		if t == reflect.TypeFor[time.Time]() {
			return
		}
		for _, f := range usedFields(t) {
			if f.reason {
				e.reason(v.Field(f.index).String())
			} else {
				e.value(v.Field(f.index))
			}
		}
	case reflect.Map:
		e.table(v)
	case reflect.Slice, reflect.Array:
		e.number(int64(v.Len()))
		for i := range v.Len() {
			e.value(v.Index(i))
		}
	case reflect.Interface:
		if !v.IsNil() {
			e.text(v.Elem().Type().Name())
			e.value(v.Elem())
		}
	case reflect.String:
		e.text(v.String())
	case reflect.Bool:
		e.number(map[bool]int64{true: 1}[v.Bool()])
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.number(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if v.Type() == reflect.TypeFor[action.Conn]() {
			e.conn(action.Conn(v.Uint()))
			return
		}
		e.number(int64(v.Uint()))
	}
}

// conn writes a connection's name. One without a name is closed, and no event names it any more. It
// gets one in the order of the encoding, because the job may compare what it has of such
// connections.
func (e *encoder) conn(c action.Conn) {
	if !e.key {
		e.refers[c] = true
	}
	n, ok := e.names[c]
	switch {
	case !ok && e.key:
		n = closedConn
	case !ok:
		n = closedConn + 1 + int64(len(e.names))
		e.names[c] = n
	}
	e.number(n)
}

// closedConn is above the names of open connections.
const closedConn = 1000

func (e *encoder) pointer(v reflect.Value) {
	if v.IsNil() {
		e.number(-1)
		return
	}
	n, ok := e.seen[v.Pointer()]
	if !ok {
		n = len(e.seen)
		e.seen[v.Pointer()] = n
	}
	switch e.number(int64(n)); {
	case ok:
	case v.Type() == reflect.TypeFor[*handshake.Gather]():
		e.gather(v.Elem().FieldByName("ranks"))
	case v.Type() == reflect.TypeFor[*gaps]() && e.running: // they have no use any more
		e.value(v.Elem().FieldByName("dialled"))
	case v.Type() == reflect.TypeFor[*wire.Join]():
		e.text(v.Elem().FieldByName("Cluster").String())
		e.number(int64(v.Elem().FieldByName("Rank").Uint()))
		e.number(int64(v.Elem().FieldByName("Here").Uint()))
	default:
		e.value(v.Elem())
	}
}

// gather writes which ranks are in: all else of them is the same in all worlds.
func (e *encoder) gather(ranks reflect.Value) {
	in := make([]int, 0, 8)
	for it := ranks.MapRange(); it.Next(); {
		in = append(in, int(it.Key().Int()))
	}
	slices.Sort(in)
	e.number(int64(len(in)))
	for _, v := range in {
		e.number(int64(v))
	}
}

// frame writes a frame, except for the parts that its receiver ignores.
func (e *encoder) frame(b []byte) {
	h, body := wire.ParsedHeader(b), b[wire.HeaderLen:]
	e.number(int64(h.Type))
	switch h.Type {
	case wire.TypeRailState:
		s, _ := wire.ParseRailState(body)
		e.number(int64(s.Rank))
		for _, b := range []bool{s.Up, s.Departed, s.Cut} {
			e.number(map[bool]int64{true: 1}[b])
		}
		e.reason(s.Reason)
	case wire.TypeLost:
		l, _ := wire.ParseLost(body)
		e.number(int64(l.Cluster))
	case wire.TypeJoin:
		j, _ := wire.ParseJoin(body)
		e.text(j.Cluster)
		e.number(int64(j.Rank))
	case wire.TypePing, wire.TypeRefuse, wire.TypeAbort:
	default:
		e.text(string(body))
	}
}

// table writes a map in the order of its encoded keys.
func (e *encoder) table(v reflect.Value) {
	type entry struct {
		key   string
		value reflect.Value
	}
	entries := make([]entry, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		k := encoder{names: e.names, key: true}
		k.value(it.Key())
		entries = append(entries, entry{string(k.out), it.Value()})
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	e.number(int64(len(entries)))
	for _, x := range entries {
		e.out = append(e.out, x.key...)
		e.value(x.value)
	}
}
