package money

// noun is the name of a currency in words, each for one unit and for several.
type noun struct {
	french struct {
		whole, fraction            [2]string
		feminine, feminineFraction bool
	}
	english struct{ whole, fraction [2]string }
}

// nouns are the names of all currencies in words. Those without decimals have no fraction.
var nouns = map[string]noun{
	"XAF": named("franc CFA", "francs CFA", "", "", "CFA franc", "CFA francs", "", ""),
	"USD": named("dollar des États-Unis", "dollars des États-Unis", "cent", "cents", "US dollar", "US dollars", "cent", "cents"),
	"EUR": named("euro", "euros", "centime", "centimes", "euro", "euros", "cent", "cents"),
	"GBP": named("livre sterling", "livres sterling", "penny", "pence", "pound sterling", "pounds sterling", "penny", "pence", feminine),
	"AUD": named("dollar australien", "dollars australiens", "cent", "cents", "Australian dollar", "Australian dollars", "cent", "cents"),
	"CAD": named("dollar canadien", "dollars canadiens", "cent", "cents", "Canadian dollar", "Canadian dollars", "cent", "cents"),
	"CHF": named("franc suisse", "francs suisses", "centime", "centimes", "Swiss franc", "Swiss francs", "centime", "centimes"),
	"DKK": named("couronne danoise", "couronnes danoises", "øre", "øre", "Danish krone", "Danish kroner", "øre", "øre", feminine),
	"NOK": named("couronne norvégienne", "couronnes norvégiennes", "øre", "øre", "Norwegian krone", "Norwegian kroner", "øre", "øre", feminine),
	"SEK": named("couronne suédoise", "couronnes suédoises", "öre", "öre", "Swedish krona", "Swedish kronor", "öre", "öre", feminine),
	"PLN": named("zloty polonais", "zlotys polonais", "grosz", "groszy", "Polish zloty", "Polish zlotys", "grosz", "groszy"),
	"HUF": named("forint hongrois", "forints hongrois", "fillér", "fillérs", "Hungarian forint", "Hungarian forints", "fillér", "fillérs"),
	"CZK": named("couronne tchèque", "couronnes tchèques", "heller", "hellers", "Czech koruna", "Czech korunas", "heller", "hellers", feminine),
	"RON": named("leu roumain", "lei roumains", "ban", "bani", "Romanian leu", "Romanian lei", "ban", "bani"),
	"BGN": named("lev bulgare", "leva bulgares", "stotinka", "stotinki", "Bulgarian lev", "Bulgarian leva", "stotinka", "stotinki", feminineFraction),
	"MXN": named("peso mexicain", "pesos mexicains", "centavo", "centavos", "Mexican peso", "Mexican pesos", "centavo", "centavos"),
	"BRL": named("real brésilien", "reais brésiliens", "centavo", "centavos", "Brazilian real", "Brazilian reais", "centavo", "centavos"),
	"ARS": named("peso argentin", "pesos argentins", "centavo", "centavos", "Argentine peso", "Argentine pesos", "centavo", "centavos"),
	"CLP": named("peso chilien", "pesos chiliens", "", "", "Chilean peso", "Chilean pesos", "", ""),
	"COP": named("peso colombien", "pesos colombiens", "centavo", "centavos", "Colombian peso", "Colombian pesos", "centavo", "centavos"),
	"PEN": named("sol péruvien", "sols péruviens", "centime", "centimes", "Peruvian sol", "Peruvian soles", "céntimo", "céntimos"),
	"INR": named("roupie indienne", "roupies indiennes", "paisa", "paise", "Indian rupee", "Indian rupees", "paisa", "paise", feminine),
	"SGD": named("dollar de Singapour", "dollars de Singapour", "cent", "cents", "Singapore dollar", "Singapore dollars", "cent", "cents"),
	"HKD": named("dollar de Hong Kong", "dollars de Hong Kong", "cent", "cents", "Hong Kong dollar", "Hong Kong dollars", "cent", "cents"),
	"TWD": named("dollar de Taïwan", "dollars de Taïwan", "cent", "cents", "New Taiwan dollar", "New Taiwan dollars", "cent", "cents"),
	"KRW": named("won sud-coréen", "wons sud-coréens", "", "", "South Korean won", "South Korean won", "", ""),
	"JPY": named("yen", "yens", "", "", "yen", "yen", "", ""),
	"NZD": named("dollar néo-zélandais", "dollars néo-zélandais", "cent", "cents", "New Zealand dollar", "New Zealand dollars", "cent", "cents"),
	"ZAR": named("rand sud-africain", "rands sud-africains", "cent", "cents", "South African rand", "South African rand", "cent", "cents"),
	"ILS": named("shekel israélien", "shekels israéliens", "agora", "agorot", "Israeli shekel", "Israeli shekels", "agora", "agorot", feminineFraction),
	"TRY": named("livre turque", "livres turques", "kuruş", "kuruş", "Turkish lira", "Turkish lira", "kuruş", "kuruş", feminine),
	"AED": named("dirham des Émirats arabes unis", "dirhams des Émirats arabes unis", "fils", "fils", "UAE dirham", "UAE dirhams", "fils", "fils"),
	"SAR": named("riyal saoudien", "riyals saoudiens", "halala", "halalas", "Saudi riyal", "Saudi riyals", "halala", "halalas"),
	"THB": named("baht thaïlandais", "bahts thaïlandais", "satang", "satangs", "Thai baht", "Thai baht", "satang", "satang"),
	"MYR": named("ringgit malaisien", "ringgits malaisiens", "sen", "sens", "Malaysian ringgit", "Malaysian ringgit", "sen", "sen"),
	"PHP": named("peso philippin", "pesos philippins", "centavo", "centavos", "Philippine peso", "Philippine pesos", "centavo", "centavos"),
	"IDR": named("roupie indonésienne", "roupies indonésiennes", "sen", "sens", "Indonesian rupiah", "Indonesian rupiah", "sen", "sen", feminine),
	"VND": named("dong vietnamien", "dongs vietnamiens", "", "", "Vietnamese dong", "Vietnamese dong", "", ""),
}

// gender says which French name of a currency is feminine.
type gender int

const (
	feminine gender = iota
	feminineFraction
)

// named returns a noun: the French whole and fraction, then the English ones.
func named(whole, wholes, fraction, fractions, english, englishes, part, parts string, genders ...gender) (n noun) {
	n.french.whole, n.french.fraction = [2]string{whole, wholes}, [2]string{fraction, fractions}
	n.english.whole, n.english.fraction = [2]string{english, englishes}, [2]string{part, parts}
	for _, g := range genders {
		n.french.feminine = n.french.feminine || g == feminine
		n.french.feminineFraction = n.french.feminineFraction || g == feminineFraction
	}
	return n
}
