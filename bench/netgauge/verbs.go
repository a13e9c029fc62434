package netgauge

import (
	"errors"
	"syscall"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/verbs"
)

// needVerbs returns an error if this build has no verbs, or this host no device.
func needVerbs() error {
	ports, err := verbs.Survey()
	if err == nil && len(ports) == 0 || errors.Is(err, syscall.ENOSYS) { // the kernel has no RDMA
		err = errors.New("this host has no RDMA device")
	}
	return err
}

func verbsModule() Module {
	m := linkModule("verbs",
		"the InfiniBand and RoCE transport (reliable connection, RC), two processes; the first address is verbs:host:port",
		verbs.Dialer{},
		func(addr string) (transport.Listener, error) { return verbs.Listen(addr, verbs.Options{}) })
	m.Unusable = needVerbs
	return m
}

// ucModule and udModule do not promise delivery, so patterns that need it do not fit.
func ucModule() Module {
	return Module{Name: "verbs_uc",
		About:      "InfiniBand and RoCE, unreliable connection (UC), two processes; the first address is verbs:host:port",
		MinMessage: datagramHeader, MaxMessage: verbsMessage, Unusable: needVerbs, Open: openUC}
}

func udModule() Module {
	return Module{Name: "verbs_ud",
		About:      "InfiniBand and RoCE, unreliable datagrams (UD) of one packet, two processes; the first address is verbs:host:port",
		MinMessage: datagramHeader, MaxMessage: 4096, Unusable: needVerbs, Open: openUD}
}
