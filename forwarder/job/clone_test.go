package job

import (
	"maps"
	"reflect"
	"sync"
	"unsafe"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/internal/wire"
)

// clone returns a copy of the forwarder that shares nothing with it that events change.
func (z *forwarder) clone() *forwarder {
	to := *z
	to.conns, to.out = maps.Clone(z.conns), nil
	if z.shell != nil {
		to.shell = &shell{}
		cloner{}.fill(reflect.TypeFor[shell](), unsafe.Pointer(to.shell), unsafe.Pointer(z.shell))
		to.subscribe()
	}
	return &to
}

// cloner maps what is copied already to its copy.
type cloner map[unsafe.Pointer]unsafe.Pointer

// shared are types that no event changes, so that copies may share them.
var shared = map[reflect.Type]bool{reflect.TypeFor[*wire.Join](): true, reflect.TypeFor[*tree](): true,
	reflect.TypeFor[[]byte](): true, reflect.TypeFor[[]wire.Cluster](): true, reflect.TypeFor[wire.Layout](): true,
	reflect.TypeFor[Config](): true, reflect.TypeFor[[]action.Action](): true}

// byType caches a property of types. It is safe for concurrent use.
type byType[V any] struct{ known sync.Map }

// of returns the property of a type, which find determines.
func (c *byType[V]) of(t reflect.Type, find func(reflect.Type) V) V {
	if v, ok := c.known.Load(t); ok {
		return v.(V)
	}
	v := find(t)
	c.known.Store(t, v)
	return v
}

var (
	deep   byType[bool]                  // deep caches isDeep.
	fields byType[[]reflect.StructField] // fields caches deepFields.
)

// isDeep reports whether a shallow copy of a value would share something that events change.
func isDeep(t reflect.Type) bool {
	return deep.of(t, func(t reflect.Type) (is bool) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Map, reflect.Slice:
			is = !shared[t]
		case reflect.Struct:
			for i := range t.NumField() {
				is = is || !shared[t] && isDeep(t.Field(i).Type)
			}
		case reflect.Array:
			is = isDeep(t.Elem())
		}
		return is
	})
}

// deepFields returns the fields of a struct that have to be copied.
func deepFields(t reflect.Type) []reflect.StructField {
	return fields.of(t, func(t reflect.Type) (list []reflect.StructField) {
		for i := range t.NumField() {
			if f := t.Field(i); isDeep(f.Type) {
				list = append(list, f)
			}
		}
		return list
	})
}

// fill copies the value of a type at from to to.
func (c cloner) fill(t reflect.Type, to, from unsafe.Pointer) {
	dst, src := reflect.NewAt(t, to).Elem(), reflect.NewAt(t, from).Elem()
	dst.Set(src)
	if isDeep(t) {
		c.deepen(t, to)
	}
}

// deepen replaces what a shallow copy shares.
func (c cloner) deepen(t reflect.Type, at unsafe.Pointer) {
	switch t.Kind() {
	case reflect.Pointer:
		old := *(*unsafe.Pointer)(at)
		if old == nil {
			return
		}
		p, ok := c[old]
		if !ok {
			p = reflect.New(t.Elem()).UnsafePointer()
			c[old] = p
			c.fill(t.Elem(), p, old)
		}
		*(*unsafe.Pointer)(at) = p
	case reflect.Struct:
		for _, f := range deepFields(t) {
			c.deepen(f.Type, unsafe.Add(at, f.Offset))
		}
	case reflect.Array:
		for i := range t.Len() {
			c.deepen(t.Elem(), unsafe.Add(at, uintptr(i)*t.Elem().Size()))
		}
	case reflect.Slice:
		v := reflect.NewAt(t, at).Elem()
		if v.IsNil() {
			return
		}
		list := reflect.MakeSlice(t, v.Len(), v.Len())
		reflect.Copy(list, v)
		v.Set(list)
		for i := 0; i < v.Len() && isDeep(t.Elem()); i++ {
			c.deepen(t.Elem(), v.Index(i).Addr().UnsafePointer())
		}
	case reflect.Map:
		v := reflect.NewAt(t, at).Elem()
		if v.IsNil() {
			return
		}
		m := reflect.MakeMapWithSize(t, v.Len())
		key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		for it := v.MapRange(); it.Next(); {
			key.SetIterKey(it)
			value.SetIterValue(it)
			if isDeep(t.Elem()) {
				c.deepen(t.Elem(), value.Addr().UnsafePointer())
			}
			m.SetMapIndex(key, value)
		}
		v.Set(m)
	}
}
