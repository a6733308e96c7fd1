package web

import (
	"quittance/money"
	"quittance/money/language"
)

// Words are the texts of the layout in one language.
type Words struct {
	// Code is the language itself, OtherTag the other language, Other its name.
	Code, Other, OtherTag   string
	Skip, TestBanner        string
	ErrorPrefix, ErrorTitle string
	SignOut                 string
	Foreign                 string // a post from another site
	Unavailable             string
	Service                 string // the name of the whole service
	Missing, MissingText    string
	Home                    string
	Nav                     string // names the links to the other pages
	Command, Copy           string
}

var french = Words{
	Code: "fr", Other: "English", OtherTag: "en",
	Skip: "Aller au contenu", TestBanner: "Mode test\u00a0: aucune somme réelle.",
	ErrorPrefix: "Erreur\u00a0: ", ErrorTitle: "À corriger",
	SignOut:     "Se déconnecter",
	Foreign:     "Cette demande vient d’un autre site.",
	Unavailable: "Le service ne répond pas. Recommencez\u00a0: rien n’est compté deux fois.",
	Service:     "Quittance", Missing: "Page introuvable", MissingText: "Aucune page n’a cette adresse. Vérifiez l’adresse, ou revenez à la page d’accueil.", Home: "Page d’accueil",
	Nav: "Pages", Command: "La même opération en ligne de commande", Copy: "Copier",
}

var english = Words{
	Code: "en", Other: "Français", OtherTag: "fr",
	Skip: "Skip to content", TestBanner: "Test mode: no real money.",
	ErrorPrefix: "Error: ", ErrorTitle: "To be corrected",
	SignOut:     "Sign out",
	Foreign:     "This request comes from another site.",
	Unavailable: "The service does not answer. Try again: nothing counts twice.",
	Service:     "Quittance", Missing: "Page not found", MissingText: "No page has this address. Check the address, or go back to the first page.", Home: "First page",
	Nav: "Pages", Command: "The same on the command line", Copy: "Copy",
}

var words = language.Table[*Words]{money.French: &french, money.English: &english}
