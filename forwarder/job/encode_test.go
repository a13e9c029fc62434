package job

import (
	"hash/fnv"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// hash is of all that can have an effect on what follows.
func (w *world) hash() uint64 {
	e := encoder{seen: map[uintptr]int{}}
	e.number(int64(w.faults))
	for _, z := range w.zips {
		if z.shell == nil {
			e.number(-1)
			continue
		}
		e.value(reflect.ValueOf(z.job).Elem())
		e.value(reflect.ValueOf(z.shell.ends))
		e.value(reflect.ValueOf(z.timers))
		e.value(reflect.ValueOf(z.dials))
	}
	for _, p := range w.ranks {
		e.value(reflect.ValueOf(*p))
	}
	for _, p := range w.pipes {
		if !p.closed[0] || !p.closed[1] {
			e.value(reflect.ValueOf(*p))
		}
	}
	h := fnv.New64a()
	h.Write(e.out)
	return h.Sum64()
}

// encoder writes values, and what they point to once.
type encoder struct {
	out  []byte
	seen map[uintptr]int
}

// constant are the fields that are the same in all worlds, or that have no effect.
var constant = map[string]bool{"out": true, "now": true, "tries": true, "cfg": true, "id": true, "clusters": true,
	"zippers": true, "tree": true, "networks": true, "base": true, "model": true, "Config": true}

func (e *encoder) number(n int64) { e.out = append(strconv.AppendInt(e.out, n, 36), ' ') }

func (e *encoder) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		e.pointer(v)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			if !constant[v.Type().Field(i).Name] {
				e.value(v.Field(i))
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
			e.out = append(e.out, v.Elem().Type().Name()...)
			e.value(v.Elem())
		}
	case reflect.String:
		e.number(int64(v.Len()))
		e.out = append(e.out, v.String()...)
	case reflect.Bool:
		e.number(map[bool]int64{true: 1}[v.Bool()])
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.number(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		e.number(int64(v.Uint()))
	}
}

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
	if e.number(int64(n)); !ok {
		e.value(v.Elem())
	}
}

// table writes a map in the order of its encoded keys.
func (e *encoder) table(v reflect.Value) {
	type entry struct {
		key   string
		value reflect.Value
	}
	var entries []entry
	for it := v.MapRange(); it.Next(); {
		k := encoder{seen: map[uintptr]int{}}
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
