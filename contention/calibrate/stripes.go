package calibrate

import (
	"fmt"
	"io"
	"math"
	"math/big"
	"strings"

	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/contention/predict"
)

// Striped has measurements of a job that uses all zippers, with messages between pairs of hosts
// that would all use the same zipper if pairs took turns.
type Striped struct {
	Pairs [][2]string // sender and receiver of each message
	Bytes int         // size of each message in bytes
	Min   int         // size of the smallest message that is cut, in bytes
	Rates []float64   // total rate while the slowest message ran, in bytes/s
}

// rails writes to the platform file w the policy for messages over several zippers (platform.Rails)
// whose prediction is nearest to the measured rate. soFar is the platform file as written so far.
func (s *Samples) rails(w io.Writer, soFar string) error {
	if len(s.Striped.Rates) == 0 {
		return nil
	}
	m, how, err := rate("messages over all zippers", s.Striped.Rates)
	if err != nil {
		return err
	}
	policies := []string{"proportional", "equal", "spread"}
	predicted := make([]float64, len(policies))
	best := 0
	for k, policy := range policies {
		if predicted[k], err = s.Striped.predicted(soFar + "rails: {policy: " + policy + "}\n"); err != nil {
			return fmt.Errorf("messages over all zippers: %w", err)
		}
		if math.Abs(predicted[k]-m.Value) < math.Abs(predicted[best]-m.Value)*(1-1e-9) {
			best = k
		}
	}
	fmt.Fprintf(w, "# %d messages that might use all zippers went at %.0f bytes/s together, %s; predicted: proportional %.0f, equal %.0f, spread %.0f\n",
		len(s.Striped.Pairs), m.Value, how, predicted[0], predicted[1], predicted[2])
	fmt.Fprintf(w, "rails: {policy: %s, min: %d}", policies[best], s.Striped.Min)
	var alike []string
	for k, policy := range policies {
		if k != best && math.Abs(predicted[k]-predicted[best]) < near*predicted[best] {
			alike = append(alike, policy)
		}
	}
	if alike != nil {
		fmt.Fprintf(w, " # %s predicts the same here: not distinguishable", strings.Join(alike, " and "))
	}
	fmt.Fprintln(w)
	return nil
}

// predicted returns the total rate of the messages in bytes/s by max-min sharing on the platform in
// file, the text of a platform file.
func (s *Striped) predicted(file string) (float64, error) {
	p, err := platform.Read(strings.NewReader(file))
	if err != nil {
		return 0, err
	}
	var ms []platform.Message
	for _, x := range s.Pairs {
		ms = append(ms, platform.Message{From: x[0], To: x[1], Bytes: big.NewRat(int64(s.Bytes), 1)})
	}
	r, err := predict.Run(p, ms, predict.Options{Sharing: "max-min"})
	if err != nil {
		return 0, err
	}
	return float64(s.Bytes) * float64(len(ms)) / r.Makespan, nil
}
