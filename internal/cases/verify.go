package cases

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"quittance/casework"
	"quittance/internal/comparison"
	"quittance/schemas"
	"quittance/schemas/origin"
)

// proved is what records say of a case.
type proved struct {
	// rows are those that the records of the highest sequence make: several topics tell of the opening of a case.
	rows     []comparison.Made
	sequence int64
	// recorded says that cases.events has the case.
	recorded bool
	// ends are the ends by the matcher, of which the first one counts.
	ends []comparison.Made
}

// compared are the columns that records make, and compares also those of ends.
var compared = strings.Split(strings.Join(strings.Fields(columns), ""), ",")

// withdrawn is how the case of a close ends that nobody has approved, when another one is proposed. The audit table says
// so; no record does before the sink has closed the case.
const withdrawn casework.Resolution = "withdrawn"

// Comparison returns the comparison of the table of cases with checkout.events, cases.events, reconciliation.events and the
// poison topics (by their names without prefix), column by column. events says who is believed in cases.events. The proposals of cases are not compared: what is decided
// by them is signed.
func Comparison(codec *schemas.Codec, events *origin.History, poison []string) *comparison.Table[proved] {
	read := map[string]func([]byte) ([]Case, error){
		schemas.TopicEvents:         func(value []byte) ([]Case, error) { return ReadEvent(codec, value) },
		schemas.TopicCases:          func(value []byte) ([]Case, error) { return ReadCaseEvent(codec, value) },
		schemas.TopicReconciliation: func(value []byte) ([]Case, error) { return ReadFinding(codec, value) },
	}
	return &comparison.Table[proved]{
		Name:      "cases",
		Query:     `SELECT ` + columns + `, recorded, ended_as, ended_at, ended_reason FROM cases`,
		Topics:    append([]string{schemas.TopicEvents, schemas.TopicCases, schemas.TopicReconciliation}, poison...),
		Positions: positions,
		Take: func(r comparison.Record, of func(string) *proved) error {
			if r.Topic == schemas.TopicCases {
				if err := events.Verify(r.Record); err != nil {
					return err
				}
			}
			list := []Case{}
			if reader := read[r.Topic]; reader != nil {
				var err error
				if list, err = reader(r.Value); err != nil {
					return err
				}
			} else {
				list = append(list, ReadPoison(r.Topic, r.Record))
			}
			for _, c := range list {
				if s := of(c.ID); s != nil {
					if err := s.take(r, c); err != nil {
						return err
					}
				}
			}
			return nil
		},
		Check: (*proved).check,
		Missing: func(s *proved) *comparison.Made {
			if len(s.rows) == 0 {
				return nil // an end of a case whose opening Kafka does not have
			}
			return &s.rows[0]
		},
	}
}

// take takes a case of a record.
func (s *proved) take(r comparison.Record, c Case) error {
	if c.EndedAs != "" {
		s.ends = append(s.ends, r.Make(string(c.EndedAs), c.EndedAt, orNull(c.EndedReason)))
		if c.Sequence != beforeOpening {
			return nil
		}
	}
	s.recorded = s.recorded || c.Recorded
	if len(s.rows) > 0 && c.Sequence < s.sequence {
		return nil
	}
	values, err := c.args()
	if err != nil {
		return err
	}
	for i, value := range values {
		switch v := value.(type) {
		case []byte: // the evidence
			var evidence map[string]any
			if err := json.Unmarshal(v, &evidence); err != nil {
				return err
			}
			values[i] = evidence
		case string:
			if !held(v) {
				return schemas.ErrUndecodable
			}
		case *string:
			if v != nil && !held(*v) {
				return schemas.ErrUndecodable
			}
		}
	}
	if c.Sequence > s.sequence || len(s.rows) == 0 {
		s.rows, s.sequence = nil, c.Sequence
	}
	s.rows = append(s.rows, r.Make(values...))
	return nil
}

// held reports whether Postgres can hold a text. The sink sets a record with another one aside.
func held(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// check compares a row.
func (s *proved) check(row []any) (v comparison.Verdict) {
	n := len(compared)
	own, recorded, end := row[:n], row[n] == true, row[n+1:]
	kind, _ := row[1].(string)
	opened, _ := row[17].(time.Time)
	v.At = opened
	if s == nil || len(s.rows) == 0 {
		// A close is proposed in Postgres; the sink records its opening soon.
		if kind == string(KindClose) && !recorded {
			return v
		}
		v.Fault = comparison.FaultAdded
		return v
	}
	v.By = &s.rows[0]
	made := false
	for i := range s.rows {
		made = made || s.rows[i].Makes(own)
	}
	if !made {
		v.Fault = comparison.FaultDifferent
		v.Columns = append(v.Columns, s.rows[0].Columns(compared, own)...)
	}
	if recorded != s.recorded {
		v.Fault = comparison.FaultDifferent
		v.Columns = append(v.Columns, comparison.Column{Name: "recorded", Postgres: comparison.Text(recorded), Kafka: comparison.Text(s.recorded)})
	}
	if !s.endsAs(kind, end) {
		v.Fault = comparison.FaultDifferent
		names := []string{"ended_as", "ended_at", "ended_reason"}
		if len(s.ends) > 0 {
			v.By = &s.ends[0]
			v.Columns = append(v.Columns, s.ends[0].Columns(names, end)...)
		} else {
			v.Columns = append(v.Columns, comparison.Column{Name: "ended_as", Postgres: comparison.Text(end[0])})
		}
	}
	return v
}

// endsAs reports whether the end of a row is one that records make.
func (s *proved) endsAs(kind string, end []any) bool {
	if end[0] == nil && end[1] == nil && end[2] == nil {
		return len(s.ends) == 0
	}
	if kind == string(KindClose) && end[0] == string(withdrawn) {
		return true
	}
	for i := range s.ends {
		if s.ends[i].Makes(end) {
			return true
		}
	}
	return false
}
