package simulator

import "github.com/go-chi/chi/v5"

// operator is an operator as the simulators play it.
type operator struct {
	// name is that of its collections, of its path and of its /control path.
	name string
	// routes serve its API below its path; nil for a counter, which calls the service.
	routes func(*Simulator, chi.Router)
	// index is its part of GET /.
	index string

	reasons    map[cause]string // its words for a payer's refusals
	rejections []string         // every reason that /control may have it give
	callback   func(collection) (method string, body []byte)
	path       func(collection) string // below callbackURL; nil for none
	// sign is the Authorization header of a call to the merchant; nil for none.
	sign func(s *Simulator, account string, body []byte) string
	// insists says that it calls until it is answered: it is never asked.
	insists bool
}

// operators are all operators, in the order of GET /.
func operators() []operator {
	return []operator{
		mtnOperator(),
		airtelOperator(),
		cardOperator(),
		counterOperator(),
	}
}
