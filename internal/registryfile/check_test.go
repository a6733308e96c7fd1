package registryfile_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"quittance/internal/connector/all"
	"quittance/internal/form"
	"quittance/internal/registry"
	"quittance/internal/registryfile"
	"quittance/test/registries"
)

const (
	agency0   = "agencies[0]"
	app0      = "agencies[0].applications[0]"
	endpoint0 = "agencies[0].applications[0].webhook_endpoints[0]"
	payout0   = "agencies[0].payouts.test.mtn_payout"
)

// payoutModes are the payment modes of the payout account of the full registry.
const payoutModes = "modes: [salaries, mobile_money], "

// webhook is an endpoint of the full registry.
const webhook = "http://127.0.0.1:8081/inbox/guichet"

// faultTable has one mistake a row: what is replaced in the file, by what, and where the fault is.
var faultTable = []struct{ old, with, path string }{
	// Faults of single fields.
	{"page_size: 25", "page_sise: 25", app0 + ".page_sise"},
	{"slug: impots", "slug: Impots", agency0 + ".slug"},
	{"slug: impots", "slug: [impots]", agency0 + ".slug"},
	{"    slug: impots\n", "", agency0 + ".slug"},
	{"id: 018F0000-0000-7000-8000-000000000001", "id: impots", agency0 + ".id"},
	{"id: 018f0000-0000-7000-8000-00000000000a", "id: 018f0000000070008000000000000000a", app0 + ".id"},
	{"name: Guichet fiscal", `name: ""`, app0 + ".name"},
	{"code: patente", "code: Patente", agency0 + ".services[0].code"},
	{"code: patente", "code: 9patente", agency0 + ".services[0].code"},
	{`erp_code: "4711"`, "erp_code: 4711", agency0 + ".service_mappings[0].erp_code"},
	{`erp_code: "4711"`, `erp_code: "` + strings.Repeat("x", 51) + `"`, agency0 + ".service_mappings[0].erp_code"},
	{`ratio: "0.015"`, "ratio: 0.015", agency0 + ".fees[0].ratio"},
	{`ratio: "0.015"`, `ratio: "1.5"`, agency0 + ".fees[0].ratio"},
	{`ratio: "0.015"`, `ratio: "0.0000001"`, agency0 + ".fees[0].ratio"},
	{"currency: XAF", "currency: XOF", agency0 + ".fees[0].currency"},
	{"channel: MOBILE_MONEY", "channel: momo", agency0 + ".fees[0].channel"},
	{"fixed: 10", "fixed: -1", agency0 + ".fees[0].fixed"},
	{"fixed: 10", "fixed: 1.5", agency0 + ".fees[0].fixed"},
	{"code: c01", "code: C01", agency0 + ".clerks[0].code"},
	{"code: c01, ", "", agency0 + ".clerks[0].code"},
	{"code: c02", "code: c01", agency0 + ".clerks[1].code"},
	{"name: Guichet 1", `name: ""`, agency0 + ".clerks[0].name"},
	{"counter: Hall, ", "", agency0 + ".clerks[0].counter"},
	{"counter: Hall", "desk: Hall", agency0 + ".clerks[0].desk"},
	{registries.ClerkTest, registries.KeyTest, agency0 + ".clerks[0].keys[0].secret"},
	{registries.ClerkTest, "ck_test_short", agency0 + ".clerks[0].keys[0].secret"},
	{registries.ClerkTwo, registries.ClerkTest, agency0 + ".clerks[1].keys[0].secret"},
	{"{code: c01", "{code: c09", agency0 + ".clerks[0].keys[0].secret"}, // its key is c01's
	{"{secret: " + registries.ClerkLive + "}", "{secret: ck_test_dddddddddddddddddddddddd}, {secret: ck_test_eeeeeeeeeeeeeeeeeeeeeeee}", agency0 + ".clerks[0].keys[2]"},
	{"step: 5", "step: 0", agency0 + ".fees[1].step"},
	{"step: 5", "step: 10001", agency0 + ".fees[1].step"},
	{"maximum: 5000", "maximum: 99", agency0 + ".fees[0].maximum"},
	{"type: bearer", "type: oauth", agency0 + ".erp.test.auth.type"},
	{"{SWITCH: MOBILE_MONEY}", "{SWITCH: mobile money}", agency0 + ".erp.test.channels.SWITCH"},
	{"{SWITCH: MOBILE_MONEY}", "{CARD: CARD}", agency0 + ".erp.test.channels.CARD"},
	{"auth: {type: bearer, token: erp-token-very-private}", "auth: {type: bearer}", agency0 + ".erp.test.auth.token"},
	{"auth: {type: bearer, token: erp-token-very-private}", "auth: {type: api_key, header: 'X Key', value: v}", agency0 + ".erp.test.auth.header"},
	{"        auth: {type: bearer, token: erp-token-very-private}\n", "", agency0 + ".erp.test.auth"},
	{"networks: [127.0.0.0/8]", "networks: [127.0.0.1/8]", agency0 + ".erp.test.networks[0]"},
	{"networks: [10.20.0.0/16]", "networks: [10.21.0.0/16]", agency0 + ".erp.live.base_url"},
	{"https://10.20.0.7:8443/api/", "http://erp.example.org", agency0 + ".erp.live.base_url"},
	{"https://momo.example.org", "https://momo.example.org?x", agency0 + ".connectors.test.momo.base_url"},
	{"api_user: momo-user, ", "", agency0 + ".connectors.test.momo.api_user"},
	{"live: {}", "live: {momo_b: {base_url: https://m.example.org, client_id: a, client_secret: b}}", agency0 + ".connectors.live.momo_b"},
	{"test: {momo: {", "test: {bank: {", agency0 + ".connectors.test.bank"},
	{`callback_networks: [41.202.16.0/20, "2c0f:f000::/32"]`, "callback_networks: [41.202.16.1/20]", agency0 + ".connectors.test.momo.callback_networks[0]"},
	{`callback_networks: [41.202.16.0/20, "2c0f:f000::/32"]`, "callback_networks: [41.202.16.0/20, 0.0.0.0/0]", agency0 + ".connectors.test.momo.callback_networks[1]"},
	{`callback_networks: [41.202.16.0/20, "2c0f:f000::/32"]`, "callback_networks: [41.0.0.0/7]", agency0 + ".connectors.test.momo.callback_networks[0]"},
	{`callback_networks: [41.202.16.0/20, "2c0f:f000::/32"]`, "callback_networks: [2c0f::/15]", agency0 + ".connectors.test.momo.callback_networks[0]"},
	{`callback_networks: [41.202.16.0/20, "2c0f:f000::/32"]`, "callback_networks: 41.202.16.0/20", agency0 + ".connectors.test.momo.callback_networks"},
	{"test: {momo: {", "test: {momo: {xaf: true, ", agency0 + ".connectors.test.momo.xaf"},
	{"test: {momo: {", `test: {card: {base_url: https://card.example.org, merchant: m, secret: s, xaf: "true"}, momo: {`, agency0 + ".connectors.test.card.xaf"},
	{"test: {momo: {", "test: {card: {base_url: https://card.example.org, merchant: m, secret: s, currencies: [XAF]}, momo: {", agency0 + ".connectors.test.card.currencies"},
	{"test: {momo: {", "test: {airtel_payout: {base_url: https://airtel.example.org}, momo: {", agency0 + ".connectors.test.airtel_payout"},
	// Accounts from which people are paid.
	{"test: {mtn_payout: {", "test: {momo_b: {base_url: https://airtel.example.org}, mtn_payout: {", agency0 + ".payouts.test.momo_b"},
	{"test: {mtn_payout: {", "test: {bank: {", agency0 + ".payouts.test.bank"},
	{"payouts: {live: {}", "payouts: {live: {airtel_payout: {modes: [aid], base_url: https://a.example.org, client_id: a, client_secret: b, pin: c, public_key: d}}", agency0 + ".payouts.live.airtel_payout"},
	{payoutModes, "", payout0 + ".modes"},
	{payoutModes, "modes: [], ", payout0 + ".modes"},
	{payoutModes, "modes: salaries, ", payout0 + ".modes"},
	{payoutModes, "modes: [salaries, Aid], ", payout0 + ".modes[1]"},
	{payoutModes, `modes: [""], `, payout0 + ".modes[0]"},
	{payoutModes, "modes: [" + strings.Repeat("x", 33) + "], ", payout0 + ".modes[0]"},
	{payoutModes, "modes: [aid, aid], ", payout0 + ".modes[1]"},
	{payoutModes, "modes: [a, b, c, d, e, f, g, h, i, j, k], ", payout0 + ".modes"},
	{"test: {mtn_payout: {", "test: {airtel_payout: {modes: [salaries], base_url: https://a.example.org, client_id: a, client_secret: b, pin: c, public_key: d}, mtn_payout: {", agency0 + ".payouts.test.airtel_payout.modes"},
	{"https://payout.example.org", "http://payout.example.org", payout0 + ".base_url"},
	{"https://payout.example.org", "https://10.0.0.1", payout0 + ".base_url"},
	{"api_user: payout-user, ", "", payout0 + ".api_user"},
	{"test: {mtn_payout: {", "test: {mtn_payout: {callback_networks: [41.202.16.0/20], ", payout0 + ".callback_networks"},
	{"test: {mtn_payout: {", "test: {mtn_payout: {oaep: true, ", payout0 + ".oaep"},
	{"offers: [momo, card]", "offers: [momo, cash]", app0 + ".offers[1]"},
	{"offers: [momo, card]", "offers: [momo, momo]", app0 + ".offers[1]"},
	{`embed_origins: ["https://guichet.example"]`, `embed_origins: ["http://guichet.example"]`, app0 + ".embed_origins[0]"},
	{`embed_origins: ["https://guichet.example"]`, `embed_origins: ["https://guichet.example/"]`, app0 + ".embed_origins[0]"},
	{`embed_origins: ["https://guichet.example"]`, `embed_origins: ["https://Guichet.example"]`, app0 + ".embed_origins[0]"},
	{`embed_origins: ["https://guichet.example"]`, `embed_origins: ["*"]`, app0 + ".embed_origins[0]"},
	{`embed_origins: ["https://guichet.example"]`, `embed_origins: https://guichet.example`, app0 + ".embed_origins"},
	{"secret: " + registries.KeyTest, "secret: sk_test_short", app0 + ".keys[0].secret"},
	{"secret: " + registries.KeyTest, "secret: pk_test_aaaaaaaaaaaaaaaaaaaaaaaa", app0 + ".keys[0].secret"},
	{"secret: " + registries.KeyTest, "secret: 12345678901234567890", app0 + ".keys[0].secret"},
	{"secret: " + registries.WebhookSecret, "secret: whsec_short", endpoint0 + ".secret"},
	{"checkout.completed, checkout.failed]", "checkout.completed, checkout.fialed]", endpoint0 + ".events[1]"},
	{"checkout.completed, checkout.failed]", "checkout.completed, checkout.created]", endpoint0 + ".events[1]"},
	{"modes: [test]", "modes: [test, prod]", endpoint0 + ".modes[1]"},
	{"max_in_flight: 3", "max_in_flight: 0", endpoint0 + ".max_in_flight"},
	{"max_per_second: 50", "max_per_second: 100001", endpoint0 + ".max_per_second"},
	{"session_lifetime: 36h", "session_lifetime: 36", app0 + ".session_lifetime"},
	{"session_lifetime: 36h", "session_lifetime: -1h", app0 + ".session_lifetime"},
	{"session_lifetime: 36h", "session_lifetime: 10000h", app0 + ".session_lifetime"},
	{"creations_per_minute: 40", "creations_per_minute: 0", app0 + ".creations_per_minute"},
	{"reads_per_minute: 500", "reads_per_minute: many", app0 + ".reads_per_minute"},
	{"page_size: 25", "page_size: 101", app0 + ".page_size"},
	{"integrator: true", "integrator: 1", app0 + ".integrator"},
	{"providers: [mobile_money_a]", "providers: [mtn]", app0 + ".cashin.providers[0]"},
	{"redirect_origins: [https://partner.example]", "redirect_origins: [https://partner.example/x]", app0 + ".cashin.redirect_origins[0]"},
	{"https://partner.example.org/hook", "http://partner.example.org/hook", app0 + ".cashin.webhook_url"},
	{"agencies: [018f0000-0000-7000-8000-000000000001]", "agencies: [impots]", "platform.keys[0].agencies[0]"},
	// The citizen portal.
	{"offers: [momo, cash_agency]", "offers: [momo, cash]", agency0 + ".portal.offers[1]"},
	{"offers: [momo, cash_agency]", "offers: []", agency0 + ".portal.offers"},
	{"session_lifetime: 3h", "session_lifetime: 4m", agency0 + ".portal.session_lifetime"},
	{"session_lifetime: 3h", "session_lifetime: 721h", agency0 + ".portal.session_lifetime"},
	{`success_origins: ["https://www.impots.example"]`, `success_origins: ["https://www.impots.example/retour"]`, agency0 + ".portal.success_origins[0]"},
	{`success_origins: ["https://www.impots.example"]`, `success_origins: https://www.impots.example`, agency0 + ".portal.success_origins"},
	{"https://www.impots.example/hooks", "http://www.impots.example/hooks", agency0 + ".portal.webhook_endpoints[0].url"},
	{"      success_origins", "      keys: []\n      success_origins", agency0 + ".portal.keys"},
	{"id: 018f0000-0000-7000-8000-00000000000a", "id: " + registry.PortalID(registries.AgencyA), app0 + ".id"},
	// Accounts whose statements are reconciled.
	{"code: mtn,", "code: MTN,", agency0 + ".accounts.test[0].code"},
	{"code: mtn-old", "code: mtn", agency0 + ".accounts.test[1].code"},
	{"kind: operator, offer: momo, number", "kind: wallet, offer: momo, number", agency0 + ".accounts.test[0].kind"},
	{"kind: operator, offer: momo, number", "kind: operator, offer: card, number", agency0 + ".accounts.test[0].offer"},
	{"kind: operator, offer: momo, number", "kind: operator, number", agency0 + ".accounts.test[0].offer"},
	{"kind: bank, iban", "kind: bank, offer: momo, iban", agency0 + ".accounts.test[3].offer"},
	{"kind: bank, iban", "kind: bank, offer: bank_transfer, bank: Banque, iban", agency0 + ".accounts.test[3].holder"},
	{"kind: bank, iban", "kind: bank, offer: bank_transfer, holder: Trésor, iban", agency0 + ".accounts.test[3].bank"},
	{"kind: bank, iban", "kind: bank, holder: Trésor, iban", agency0 + ".accounts.test[3].bank"},
	{"kind: cash, profile", "kind: cash, bank: Banque, profile", agency0 + ".accounts.test[2].bank"},
	{"number: 30012-00105-00012345678-90\n          currency: EUR", "offer: bank_transfer\n          holder: Trésor\n          bank: Banque\n          currency: EUR", agency0 + ".accounts.live[0].iban"},
	{"channels: {SWITCH: MOBILE_MONEY}", "channels: {BANK_TRANSFER: virement}", agency0 + ".erp.test.channels.BANK_TRANSFER"},
	{"kind: bank, iban", "kind: bank, settles_to: guichets, iban", agency0 + ".accounts.test[3].settles_to"},
	{"fingerprint: 0123456789abcdef, ", "", agency0 + ".accounts.test[1].offer"},
	{"fingerprint: 0123456789abcdef", "fingerprint: 0123456789ABCDEF", agency0 + ".accounts.test[1].fingerprint"},
	{"kind: cash, profile", "kind: cash, fingerprint: 0123456789abcdef, profile", agency0 + ".accounts.test[2].fingerprint"},
	{"CG39 3001 1000 1010 1345 1300 019", "CG39 3001 1000 1010 1345 1300 018", agency0 + ".accounts.test[3].iban"},
	{"CG39 3001 1000 1010 1345 1300 019", "CG39 3001 1000 1010 1345 1300 0190", agency0 + ".accounts.test[3].iban"},
	{"iban: CG39 3001 1000 1010 1345 1300 019, ", "", agency0 + ".accounts.test[3].number"},
	{`number: "46733123454"`, `number: 46733123454`, agency0 + ".accounts.test[0].number"},
	{`number: "46733123455"`, `number: "46733123454"`, agency0 + ".accounts.test[1].number"},
	{`number: "46733123454", `, ``, agency0 + ".accounts.test[0].number"},
	{"offer: card, currency: EUR", "offer: card, currency: XOF", agency0 + ".accounts.test[4].currency"},
	{"profile: card-settlement", "profile: card-settlement, settles_to: banque", agency0 + ".accounts.test[4].settles_to"}, // banque is in XAF
	{"profile: card-settlement", "profile: camt.053", agency0 + ".accounts.test[4].profile"},
	{"profile: cash-slip, settles_to: banque", "profile: cash-slip, settles_to: bourse", agency0 + ".accounts.test[2].settles_to"}, // test and live never meet
	{"profile: cash-slip, settles_to: banque", "profile: cash-slip, settles_to: mtn", agency0 + ".accounts.test[2].settles_to"},
	{"number: 30012-00105-00012345678-90", "iban: CG39 3001 1000 1010 1345 1300 019", agency0 + ".accounts.live[0].iban"}, // nor by their numbers
	{"zone: Africa/Brazzaville", "zone: Africa/Brazaville", agency0 + ".accounts.test[0].zone"},
	{"zone: Africa/Brazzaville", "zone: Local", agency0 + ".accounts.test[0].zone"},
	{`cutoff: "17:00"`, `cutoff: "24:00"`, agency0 + ".accounts.test[0].cutoff"},
	{`cutoff: "17:00"`, `cutoff: "7:00"`, agency0 + ".accounts.test[0].cutoff"},
	{"grace_days: 3", "grace_days: 32", agency0 + ".accounts.test[0].grace_days"},
	{`'\bMTN-\d{8}\b'`, `'MTN-['`, agency0 + ".accounts.test[3].batch_pattern"},
	{`'\bMTN-\d{8}\b'`, `'.*'`, agency0 + ".accounts.test[3].batch_pattern"},
	{"kind: cash, profile", "kind: cash, batch_pattern: X1, profile", agency0 + ".accounts.test[2].batch_pattern"},
	{"profile: csv\n", "profile: camt.053\n", agency0 + ".accounts.live[0].columns"},
	{"kind: cash, profile: cash-slip", "kind: cash, profile: csv", agency0 + ".accounts.test[2].columns"},
	{`separators: ";", `, "", agency0 + ".accounts.live[0].columns"},
	{"id: [2, 3]", "id: [2, 7]", agency0 + ".accounts.live[0].columns"},
	{"id: [2, 3]", "id: [0]", agency0 + ".accounts.live[0].columns.id[0]"},
	{"id: [2, 3]", "id: [2, 3], types: {Achat: money}, type: 3", agency0 + ".accounts.live[0].columns"},
	{"decimal: \",\"", "decimal: \",\", decimals: 2", agency0 + ".accounts.live[0].columns.decimals"},
	// What citizens see.
	{"slug: impots", "slug: impots\n    logo: impots.png", agency0 + ".logo"},
	{"slug: impots", "slug: impots\n    logo: ''", agency0 + ".logo"},
	{"slug: impots", "slug: impots\n    address: " + strings.Repeat("x", 201), agency0 + ".address"},
	{"slug: impots", "slug: impots\n    contact: {phone: '22 000 00 00'}", agency0 + ".contact.phone"},
	{"slug: impots", "slug: impots\n    contact: {phone: '+242 <b>'}", agency0 + ".contact.phone"},
	{"slug: impots", "slug: impots\n    contact: {email: 'Impôts <contact@impots.example>'}", agency0 + ".contact.email"},
	{"slug: impots", "slug: impots\n    contact: {email: impots.example}", agency0 + ".contact.email"},
	{"slug: impots", "slug: impots\n    contact: {hours: \"8 h\\n15 h\"}", agency0 + ".contact.hours"},
	{"slug: impots", "slug: impots\n    contact: {fax: '+242 22 000 00 00'}", agency0 + ".contact.fax"},
	{"slug: impots", "slug: impots\n    contact: '+242 22 000 00 00'", agency0 + ".contact"},
	// Addresses of webhooks.
	{webhook, "http://guichet.example.org/hook", endpoint0 + ".url"},
	{webhook, "https://user:secret@guichet.example.org", endpoint0 + ".url"},
	{webhook, "https://93.184.216.34/hook", endpoint0 + ".url"},
	{webhook, "https://127.1/hook", endpoint0 + ".url"},
	{webhook, "https://0x7f000001/hook", endpoint0 + ".url"},
	{webhook, "https://2130706433/hook", endpoint0 + ".url"},
	{webhook, `"https://[2606:2800:220:1::1]/hook"`, endpoint0 + ".url"},
	{webhook, "https://guichet/hook", endpoint0 + ".url"},
	{webhook, "https://localhost/hook", endpoint0 + ".url"},
	{webhook, "https://a.localhost./hook", endpoint0 + ".url"},
	{webhook, "https://erp.internal/hook", endpoint0 + ".url"},
	{webhook, "https://guichet.example.org:8443/hook", endpoint0 + ".url"},
	{webhook, "https://guichet.example.org/hook#x", endpoint0 + ".url"},
	{webhook, "https://127.0.0.1:8081/hook", endpoint0 + ".url"},
	{webhook, "http://127.0.0.1/hook", endpoint0 + ".url"},
	{webhook, "http://127.0.0.2:8081/hook", endpoint0 + ".url"},
	{webhook, "http://127.0.0.1:08081/hook", endpoint0 + ".url"},
	{webhook, "http://localhost:8081/hook", endpoint0 + ".url"},
	{webhook, `"http://[0:0:0:0:0:0:0:1]:8081/hook"`, endpoint0 + ".url"},
	{webhook, `"http://[::ffff:127.0.0.1]:8081/hook"`, endpoint0 + ".url"},
	{webhook, "http://192.168.1.2:8081/hook", endpoint0 + ".url"},
	{webhook, `"https://gu\u0131chet.example.org/hook"`, endpoint0 + ".url"},
	{webhook, "/hook", endpoint0 + ".url"},
	{webhook, "ftp://guichet.example.org/hook", endpoint0 + ".url"},
	// Faults in comparison with the rest of the file or with the database.
	{"slug: impots", "slug: douanes", agency0 + ".slug"},
	{"id: 018f0000-0000-7000-8000-00000000000a", "id: 018f0000-0000-7000-8000-00000000000b", app0 + ".id"},
	{"id: 018f0000-0000-7000-8000-000000000101", "id: 018f0000-0000-7000-8000-000000000201", agency0 + ".services[0].id"},
	{"id: 018f0000-0000-7000-8000-000000000101", "id: 018f0000-0000-7000-8000-000000000109", agency0 + ".services[0].code"},
	{"{code: foncier,", "{code: patente,", agency0 + ".services[1].code"},
	{"service: patente}", "service: fret}", agency0 + ".service_mappings[0].service"},
	{`erp_code: "4712"`, `erp_code: "4711"`, agency0 + ".service_mappings[1].erp_code"},
	{"default_service: patente", "default_service: fret", agency0 + ".default_service"},
	{"late_payments: honour", "late_payments: perhaps", agency0 + ".late_payments"},
	{"payment_limit: 500000", "payment_limit: -1", agency0 + ".clerks[0].payment_limit"},
	{"day_limit: 2000000", `day_limit: "much"`, agency0 + ".clerks[0].day_limit"},
	{"single_approval_below: 5000", "single_approval_below: -1", agency0 + ".single_approval_below"},
	{"{channel: CARD, ", "{channel: MOBILE_MONEY, ", agency0 + ".fees[1]"},
	{"secret: " + registries.KeyLive, "secret: " + registries.KeyTest, app0 + ".keys[1].secret"},
	{"secret: " + registries.KeyTest, "secret: sk_test_cccccccccccccccccccccccc", app0 + ".keys[0].secret"},
	{"secret: " + registries.KeyTest, "secret: " + registries.KeyPlatform, app0 + ".keys[0].secret"},
	{"keys: [{secret: " + registries.KeyTest + "}", "keys: [{secret: sk_test_dddddddddddddddddddddddd}, {secret: sk_test_eeeeeeeeeeeeeeeeeeeeeeee}", app0 + ".keys[1]"},
	{"webhook_endpoints: [{url: " + webhook, "webhook_endpoints: [{url: " + webhook + "}, {url: " + webhook, "agencies[0].applications[0].webhook_endpoints[1].url"},
	{"agencies: [018f0000-0000-7000-8000-000000000001]", "agencies: [018f0000-0000-7000-8000-000000000001, 018f0000-0000-7000-8000-000000000009]", "platform.keys[0].agencies[1]"},
	{"agencies: [018f0000-0000-7000-8000-000000000001]", "agencies: [018f0000-0000-7000-8000-000000000001, 018f0000-0000-7000-8000-000000000002]", "platform.keys[0].agencies[1]"},
	{"integrator: true", "integrator: false", "platform.keys[0].agencies[0]"},
	{"    applications:\n", "    applications:\n      - {id: 018f0000-0000-7000-8000-00000000000c, name: Z, integrator: true}\n", app0 + ".integrator"},
	{"api_key: cashin-api-private", "api_key: taken-api-key", app0 + ".cashin.api_key"},
	{"secret_key: cashin-secret-private", "secret_key: another", app0 + ".cashin.api_key"},
	{"cashin: {mode: test", "cashin: {mode: live", app0 + ".cashin.api_key"},
	{"cashin: {mode: test", "cashin: {mode: both", app0 + ".cashin.mode"},
	{"cashin: {mode: test, ", "cashin: {", app0 + ".cashin.mode"},
	{"api_key: cashin-api-private, ", "", app0 + ".cashin.api_key"},
	{"secret_key: cashin-secret-private, ", "", app0 + ".cashin.secret_key"},
	// Not a registry file.
	{"platform:", "platforms:", "platforms"},
	{"platform:", "platform: {", ""},
	{"    slug: impots\n", "    slug: impots\n    slug: impots\n", ""},
}

func TestFaults(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	h.Seed(t, `
agencies:
  - {id: 018f0000-0000-7000-8000-000000000002, slug: douanes, name: X, services: [{id: 018f0000-0000-7000-8000-000000000201, code: fret, label: F}],
     applications: [{id: 018f0000-0000-7000-8000-00000000000b, name: Y, keys: [{secret: sk_test_cccccccccccccccccccccccc}], cashin: {mode: test, api_key: taken-api-key, secret_key: x}}]}`)
	var revision int64
	if err := h.Pool.QueryRow(t.Context(), `SELECT revision FROM registry_revision`).Scan(&revision); err != nil {
		t.Fatal(err)
	}

	for _, c := range faultTable {
		report, err := h.TrySeed(t, registries.Edit(t, c.old, c.with))
		var faults *form.FaultsError
		if !errors.As(err, &faults) {
			t.Errorf("%q: no fault, %+v, %v", c.with, report, err)
			continue
		}
		if !slices.ContainsFunc(faults.Faults, func(f form.Fault) bool { return f.Field == c.path }) {
			t.Errorf("%q: want a fault at %s, got %+v", c.with, c.path, faults.Faults)
		}
		// One mistake may cause a second fault at another place, but no more.
		if len(faults.Faults) > 2 {
			t.Errorf("%q: one mistake, %d faults: %+v", c.with, len(faults.Faults), faults.Faults)
		}
		for _, s := range registries.Plain {
			if strings.Contains(fmt.Sprintf("%v %+v", err, faults.Faults), s) {
				t.Errorf("%q: the error shows a secret: %+v", c.with, faults.Faults)
			}
		}
	}
	var after int64
	if err := h.Pool.QueryRow(t.Context(), `SELECT revision FROM registry_revision`).Scan(&after); err != nil || after != revision {
		t.Errorf("a refused file changed something: %v", err)
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	_, err := h.TrySeed(t, `
plattform: {}
agencies:
  - id: x
    slug: impots
    colour: red
    applications:
      - {id: 018f0000-0000-7000-8000-00000000000a, name: A}
      - id: 018f0000-0000-7000-8000-00000000000b
        name: B
        webhook_endpoints: [{url: http://example.org, events: [nothing]}]
  - {id: 018f0000-0000-7000-8000-000000000002, slug: x, name: X, default_service: none}
`)
	var faults *form.FaultsError
	if !errors.As(err, &faults) {
		t.Fatal(err)
	}
	var got []string
	for _, f := range faults.Faults {
		got = append(got, f.Field)
	}
	slices.Sort(got)
	want := []string{
		"agencies[0].applications[1].webhook_endpoints[0].events[0]", "agencies[0].applications[1].webhook_endpoints[0].url",
		"agencies[0].colour", "agencies[0].id", "agencies[0].name", "agencies[1].default_service", "plattform",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var n int
	if err := h.Pool.QueryRow(t.Context(), `SELECT count(*) FROM agencies`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d agencies, %v: the second agency has no fault, but nothing may change", n, err)
	}
}

func TestOutsideDeveloperMode(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	seed := func(text string) (registryfile.Report, error) {
		return registryfile.Apply(t.Context(), h.Pool, registries.Actor, []byte(text), registryfile.Options{Keys: h.Keys, Operators: all.Operators()})
	}
	_, err := seed(registries.Full)
	var faults *form.FaultsError
	if !errors.As(err, &faults) {
		t.Fatal(err)
	}
	for _, path := range []string{
		"platform.keys[0].secret", "platform.webhook_endpoints[0].secret", app0 + ".keys[0].secret", app0 + ".keys[1].secret", endpoint0 + ".secret", endpoint0 + ".url",
		agency0 + ".erp.test.auth.token", agency0 + ".erp.test.base_url", agency0 + ".erp.test.networks[0]", agency0 + ".erp.live.auth.password",
		agency0 + ".connectors.test.momo.subscription_key", agency0 + ".connectors.test.momo.api_key", payout0 + ".subscription_key", payout0 + ".api_key", app0 + ".cashin.api_key", app0 + ".cashin.secret_key", agency0 + ".clerks[0].keys[0].secret",
	} {
		if !slices.ContainsFunc(faults.Faults, func(f form.Fault) bool { return f.Field == path }) {
			t.Errorf("no fault at %s", path)
		}
	}
	report, err := seed(`
agencies:
  - {id: 018f0000-0000-7000-8000-000000000001, slug: impots, name: X, applications: [
      {id: 018f0000-0000-7000-8000-00000000000a, name: Y, webhook_endpoints: [{url: https://guichet.example.org/hook, events: [checkout.completed]}]}]}`)
	if err != nil || len(report.Minted) != 1 {
		t.Errorf("a file without secrets: %+v, %v", report, err)
	}
}

// Developer mode refuses a database that was used for real payments.
func TestDeveloperModeRefusesLiveConnectorsOfTheDatabase(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	h.Exec(t, `INSERT INTO connector_accounts VALUES ($1, true, 'momo', 'https://momo.example.org', 'x')`, registries.AgencyA)
	var faults *form.FaultsError
	if _, err := h.TrySeed(t, registries.Full); !errors.As(err, &faults) || !strings.Contains(faults.Faults[0].Message, "live momo account") {
		t.Errorf("error = %v", err)
	}
}
