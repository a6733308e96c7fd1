package simulator

import "github.com/go-chi/chi/v5"

// operator is an operator as the simulators play it.
type operator struct {
	// name is the operator in its collections, in its path and in its /control path.
	name string
	// routes serves its API below its path; nil for a counter, which calls the service.
	routes func(*Simulator, chi.Router)
	// index is its text in GET /.
	index string

	reasons    map[cause]string // its words for a payer's refusals
	rejections []string         // the reasons that /control may choose
	callback   func(collection) (method string, body []byte)
	path       func(collection) string // path below callbackURL; nil for none
	// sign returns the Authorization header of a call to the merchant; nil for none.
	sign func(s *Simulator, account string, body []byte) string
	// insists makes it call until it is answered, because it has no enquiries.
	insists bool
}

// operators are all operators, in the order of GET /.
func operators() []operator {
	return []operator{
		mtnOperator(),
		airtelOperator(),
		switchOperator(),
		cardOperator(),
		counterOperator(),
	}
}
