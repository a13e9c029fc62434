package delayline

import "encoding/binary"

// HeaderBytes come before each Ethernet frame: Linux's struct virtio_net_hdr, in the byte order of
// this machine. It tells whether a frame stands for many packets (gso_type, gso_size) and where a
// checksum is missing (csum_start, csum_offset).
const HeaderBytes = 10

// Values of the header's fields.
const (
	gsoNone  = 0
	gsoTCPv4 = 1
	gsoTCPv6 = 4
	gsoECN   = 0x80
)

const (
	ethernetBytes = 14
	typeIPv4      = 0x0800
	typeIPv6      = 0x86DD

	tcpFIN, tcpPSH, tcpCWR = 0x01, 0x08, 0x80
)

// shape describes the packets of a frame: they have the same headers, and each has size bytes of
// payload but the last, which has the rest.
type shape struct {
	headers int // bytes of Ethernet, IP and TCP; the whole frame if it is one packet
	size    int
	payload int
}

// look returns a frame's shape; b begins with the virtio_net_hdr.
func look(b []byte) shape {
	frame := b[HeaderBytes:]
	whole := shape{headers: len(frame)}
	kind := b[1] &^ gsoECN
	size := int(binary.NativeEndian.Uint16(b[4:]))
	tcp := int(binary.NativeEndian.Uint16(b[6:])) // the checksum of a TCP frame of several packets is missing
	if kind != gsoTCPv4 && kind != gsoTCPv6 || size == 0 || tcp < ethernetBytes+20 || tcp+20 > len(frame) {
		return whole
	}
	switch binary.BigEndian.Uint16(frame[12:]) {
	case typeIPv4:
		if kind != gsoTCPv4 || tcp != ethernetBytes+int(frame[ethernetBytes]&15)*4 {
			return whole
		}
	case typeIPv6:
		if kind != gsoTCPv6 || tcp < ethernetBytes+40 {
			return whole
		}
	default:
		return whole
	}
	headers := tcp + int(frame[tcp+12]>>4)*4
	if headers < tcp+20 || headers >= len(frame) || headers > maxHeaders-HeaderBytes {
		return whole
	}
	return shape{headers: headers, size: size, payload: len(frame) - headers}
}

// packets returns the number of packets.
func (s shape) packets() int {
	if s.size == 0 {
		return 1
	}
	return (s.payload + s.size - 1) / s.size
}

// bytes returns the length of the Ethernet frame of packet k.
func (s shape) bytes(k int) int {
	if s.size == 0 {
		return s.headers
	}
	return s.headers + min(s.size, s.payload-k*s.size)
}

// part returns the place of the payload of packets from to to-1, counted from the frame's first
// byte.
func (s shape) part(from, to int) (begin, end int) {
	return s.headers + from*s.size, min(s.headers+to*s.size, s.headers+s.payload)
}

// cut turns the headers of the whole frame into those of the packets from to to-1: b is a copy of
// the virtio_net_hdr and the headers, changed in place.
func (s shape) cut(b []byte, from, to int) {
	begin, end := s.part(from, to)
	if to-from == 1 {
		b[1] = gsoNone
		binary.NativeEndian.PutUint16(b[4:], 0)
	}
	tcp := int(binary.NativeEndian.Uint16(b[6:]))
	binary.NativeEndian.PutUint16(b[2:], uint16(s.headers)) // hdr_len
	frame := b[HeaderBytes:]
	ip := frame[ethernetBytes:]
	was, is := uint16(s.headers-tcp+s.payload), uint16(s.headers-tcp+end-begin) // length of the TCP part
	if binary.BigEndian.Uint16(frame[12:]) == typeIPv4 {
		binary.BigEndian.PutUint16(ip[2:], uint16(tcp-ethernetBytes)+is)
		binary.BigEndian.PutUint16(ip[4:], binary.BigEndian.Uint16(ip[4:])+uint16(from))
		binary.BigEndian.PutUint16(ip[10:], 0)
		binary.BigEndian.PutUint16(ip[10:], ^sum(ip[:int(ip[0]&15)*4]))
	} else {
		binary.BigEndian.PutUint16(ip[4:], uint16(tcp-ethernetBytes-40)+is)
	}
	t := frame[tcp:]
	binary.BigEndian.PutUint32(t[4:], binary.BigEndian.Uint32(t[4:])+uint32(from*s.size))
	if from > 0 {
		t[13] &^= tcpCWR
	}
	if end < s.headers+s.payload {
		t[13] &^= tcpFIN | tcpPSH
	}
	// The field has the sum of the pseudo header, with the length; the rest is added later.
	check := uint32(binary.BigEndian.Uint16(t[16:])) + uint32(^was) + uint32(is)
	binary.BigEndian.PutUint16(t[16:], fold(check))
}

// sum returns the Internet checksum's sum (RFC 1071) of an even number of bytes.
func sum(b []byte) uint16 {
	var s uint32
	for ; len(b) >= 2; b = b[2:] {
		s += uint32(binary.BigEndian.Uint16(b))
	}
	return fold(s)
}

func fold(s uint32) uint16 {
	for s>>16 != 0 {
		s = s&0xffff + s>>16
	}
	return uint16(s)
}
