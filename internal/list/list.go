// Package list is a doubly linked list whose elements carry their own links, so that adding one
// allocates nothing. An element has one Node for every list that it may be in at a time.
package list

// Node is an element's place in one list. Of is the element, which must be set once, when the
// element is made.
type Node[T any] struct {
	prev, next *Node[T]
	Of         T
}

// Next returns the node after this one, or nil if it is the last or has been removed.
func (n *Node[T]) Next() *Node[T] { return n.next }

// List is a list. Its zero value is empty. It is not safe for concurrent use.
type List[T any] struct{ first, last *Node[T] }

// First returns the first node, or nil if the list is empty.
func (l *List[T]) First() *Node[T] { return l.first }

// Empty reports whether the list has no nodes.
func (l *List[T]) Empty() bool { return l.first == nil }

// Push adds a node, which must not be in a list of this kind, at the end.
func (l *List[T]) Push(n *Node[T]) {
	n.prev, n.next = l.last, nil
	if l.last == nil {
		l.first = n
	} else {
		l.last.next = n
	}
	l.last = n
}

// PushFirst adds a node, which must not be in a list of this kind, at the beginning.
func (l *List[T]) PushFirst(n *Node[T]) {
	n.prev, n.next = nil, l.first
	if l.first == nil {
		l.last = n
	} else {
		l.first.prev = n
	}
	l.first = n
}

// Remove removes a node that is in this list.
func (l *List[T]) Remove(n *Node[T]) {
	if n.prev == nil {
		l.first = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		l.last = n.prev
	} else {
		n.next.prev = n.prev
	}
	n.prev, n.next = nil, nil
}

// Len returns the number of nodes. It takes linear time.
func (l *List[T]) Len() (n int) {
	for x := l.first; x != nil; x = x.next {
		n++
	}
	return n
}
