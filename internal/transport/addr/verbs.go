package addr

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Verbs is "verbs:HOST:PORT[?OPTION=VALUE[&…]]": where and how the queue pairs' data are exchanged,
// and which local port of which device is used. Without options they are exchanged over TCP, and
// the port is the one of the TCP connection's local address.
type Verbs struct {
	Host string // host:port, of TCP's ports or of the communication manager's, which are different ones
	// CM selects the communication manager (librdmacm), which then chooses all other options. Both
	// ends must select it.
	CM     bool
	Device string // device name, as ibv_devices prints it, or ""
	Port   int    // port of the device, from 1; 0 for a matching one
	GID    int    // index in the port's table; -1 for a matching one
	PKey   uint16 // partition key; 0 for that of the IPoIB interface, or else the port's first
	SL     uint8  // service level (InfiniBand)
	// Timeout is the time limit of one acknowledgement at this end, 4.096 µs · 2^Timeout; 0 for the
	// link's default.
	Timeout uint8
}

// ParseVerbs parses an address, with or without its "verbs:". Options: device=NAME[:PORT],
// gid=INDEX, pkey=0xKEY, sl=LEVEL; or instead connect=cm; timeout=EXPONENT.
func ParseVerbs(s string) (Verbs, error) {
	a := Verbs{GID: -1}
	rest, query, _ := strings.Cut(strings.TrimPrefix(s, verbsScheme), "?")
	bad := func(format string, v ...any) (Verbs, error) {
		return Verbs{}, fmt.Errorf("address %q: %s; want verbs:HOST:PORT[?device=NAME:PORT&gid=INDEX&pkey=0xKEY&sl=LEVEL] or verbs:HOST:PORT?connect=cm", s, fmt.Sprintf(format, v...))
	}
	if _, port, err := net.SplitHostPort(rest); err != nil {
		return bad("%v", err)
	} else if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return bad("port %q", port)
	}
	a.Host = rest
	options, err := url.ParseQuery(query)
	if err != nil {
		return bad("%v", err)
	}
	for k, vs := range options {
		v := vs[len(vs)-1]
		var n uint64
		var err error
		switch k {
		case "connect":
			if a.CM = v == "cm"; !a.CM && v != "tcp" {
				return bad("connect=%s; there are connect=cm, by librdmacm, and connect=tcp", v)
			}
		case "device":
			name, port, given := strings.Cut(v, ":")
			if a.Device = name; name == "" {
				return bad("device without a name")
			}
			if given {
				if n, err = strconv.ParseUint(port, 10, 8); n == 0 {
					return bad("device port %q", port)
				}
			}
			a.Port = int(n)
		case "gid":
			n, err = strconv.ParseUint(v, 10, 8)
			a.GID = int(n)
		case "pkey":
			n, err = strconv.ParseUint(v, 0, 16)
			a.PKey = uint16(n)
		case "timeout":
			if n, err = strconv.ParseUint(v, 10, 8); n < 1 || n > 31 {
				return bad("timeout=%s; want 1 to 31: an acknowledgement is awaited for 4.096 µs · 2^timeout", v)
			}
			a.Timeout = uint8(n)
		case "sl":
			n, err = strconv.ParseUint(v, 10, 4)
			a.SL = uint8(n)
		default:
			return bad("there is no option %s", k)
		}
		if err != nil {
			return bad("option %s=%q", k, v)
		}
	}
	if a.CM && a != (Verbs{Host: a.Host, CM: true, GID: -1, Timeout: a.Timeout}) {
		return bad("with connect=cm the device is the one that IP routing leads to, and the subnet manager gives partition and service level: leave the other options out")
	}
	return a, nil
}

// CompleteVerbs is ParseVerbs for addresses without the port, or without host and port.
func CompleteVerbs(s string, port int) (Verbs, error) {
	host, query, given := strings.Cut(strings.TrimPrefix(s, verbsScheme), "?")
	host = WithPort(host, port)
	if given {
		host += "?" + query
	}
	return ParseVerbs(verbsScheme + host)
}

// String is the inverse of ParseVerbs.
func (a Verbs) String() string {
	var o []string
	if a.CM {
		o = append(o, "connect=cm")
	}
	if a.Device != "" {
		d := "device=" + a.Device
		if a.Port != 0 {
			d += ":" + strconv.Itoa(a.Port)
		}
		o = append(o, d)
	}
	if a.GID >= 0 {
		o = append(o, "gid="+strconv.Itoa(a.GID))
	}
	if a.PKey != 0 {
		o = append(o, fmt.Sprintf("pkey=%#x", a.PKey))
	}
	if a.SL != 0 {
		o = append(o, fmt.Sprintf("sl=%d", a.SL))
	}
	if a.Timeout != 0 {
		o = append(o, fmt.Sprintf("timeout=%d", a.Timeout))
	}
	if len(o) == 0 {
		return verbsScheme + a.Host
	}
	return verbsScheme + a.Host + "?" + strings.Join(o, "&")
}
