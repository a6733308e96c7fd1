package papers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quittance/document"
	"quittance/internal/batchseal"
	"quittance/internal/papers"
	"quittance/internal/receipts"
	"quittance/internal/secret"
	"quittance/money"
)

// A passkey, a digest and a root.
const (
	passkey = "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"
	signed  = "0b14d501a594442a01c6859541bcb3e8164d183d32937b851835442f69d5c94e"
)

func person(name, number string) document.Person {
	return document.Person{Name: name, Number: number, ID: "019ab1c2-0000-7abc-8def-0123456789ab"}
}

func approval(t testing.TB) document.Approval {
	return document.Approval{
		Agency: agency(t), Batch: "dsb_06h2n72i9400143pccvbjmb23j1k2kk7r604rt8e0qhn557tf", BatchRef: "salaries-2026-11", Revision: 2, Date: "2026-11-30", PayUntil: "2026-12-05",
		Count: 2150, Sum: 537_750_000, Largest: 1_200_000, Currency: "XAF", Maker: person("Ama Okemba", "M-1"), SealedAt: paidAt, Digest: signed, Root: passkey, Policy: 3,
		Accounts: []document.Total{{Name: "mtn_payout", Count: 2000, Sum: 500_000_000}, {Name: "banque_bgfi", Count: 150, Sum: 37_750_000}},
		Levels: []document.Level{
			{Role: "chief", Needed: 1, Given: []document.Approved{{By: person("Ben Ngoma", "M-2"), At: paidAt.Add(time.Hour), Passkey: passkey}}},
			{Role: "director", Needed: 1, Given: []document.Approved{{By: person("Cléo Mabiala", "M-3"), For: person("Dan Itoua", "M-4"), At: paidAt.Add(2 * time.Hour), Passkey: signed}}},
		},
		ReleasedBy: person("Rita Moukala", "M-5"), ReleasedAt: paidAt.Add(3 * time.Hour), State: document.StateDone, At: paidAt.Add(30 * time.Hour), CheckAddress: host + "/q",
		Lines: []document.StateTotal{
			{State: document.StatePaid, Count: 2147, Sum: 537_000_000}, {State: document.StateRefused, Count: 2, Sum: 500_000}, {State: document.StateReturned, Count: 1, Sum: 250_000}, {State: document.StateReady},
		},
	}
}

func payout(t testing.TB) document.Payout {
	return document.Payout{
		Agency: agency(t), PaidAt: paidAt, Amount: 250_000, Currency: "XAF", Payee: "Ngoma Jean-Baptiste", Account: "•••• 0001", Purpose: "Salaire de novembre 2026", Means: "mobile_money",
		BatchRef: "salaries-2026-11", LineRef: "AGENT-001", Revision: 2, Number: 17, PayoutRef: "QD0A1B2C3D4E5F6G7H8J9K0MNP", OperatorRef: "23503452", At: paidAt.Add(30 * time.Hour), CheckAddress: host + "/q",
	}
}

// sealed returns what the code of a paper holds. The key is that of a fixed master key.
func sealed(t testing.TB, live bool, c batchseal.Claims) string {
	t.Helper()
	keys, err := secret.ParseKeys("k1:" + strings.Repeat("A", 43) + "=")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := batchseal.NewSigner(keys)
	if err != nil {
		t.Fatal(err)
	}
	c.Version, c.Issuer, c.IssuedAt, c.Agency = batchseal.Version, host, paidAt.Unix(), "impots"
	token, err := signer.Token(live, c)
	if err != nil {
		t.Fatal(err)
	}
	return receipts.Address("https://"+host, token)
}

func certificate(t testing.TB, lang money.Language, a document.Approval) []byte {
	t.Helper()
	c, err := document.NewCertificate(lang, a)
	if err != nil {
		t.Fatal(err)
	}
	pdf, err := papers.CertificatePDF(c, sealed(t, !a.Test, batchseal.Claims{
		Kind: batchseal.KindCertificate, Batch: a.Batch, BatchRef: a.BatchRef, Revision: a.Revision, Count: a.Count, Amount: a.Sum, Currency: a.Currency, State: string(a.State), Digest: batchseal.DigestClaim([32]byte{1}),
	}))
	if err != nil {
		t.Fatal(err)
	}
	return pdf
}

func advice(t testing.TB, lang money.Language, p document.Payout) []byte {
	t.Helper()
	a, err := document.NewAdvice(lang, p)
	if err != nil {
		t.Fatal(err)
	}
	pdf, err := papers.AdvicePDF(a, sealed(t, !p.Test, batchseal.Claims{
		Kind: batchseal.KindAdvice, BatchRef: p.BatchRef, Revision: p.Revision, LineRef: p.LineRef, PayoutRef: p.PayoutRef, OperatorRef: p.OperatorRef, Amount: p.Amount, Currency: p.Currency, State: "paid", PaidAt: p.PaidAt.Unix(),
	}))
	if err != nil {
		t.Fatal(err)
	}
	return pdf
}

// batchSamples are papers of batches of all kinds, by name.
func batchSamples(t testing.TB) map[string][]byte {
	t.Helper()
	out := map[string][]byte{"certificate-fr": certificate(t, money.French, approval(t)), "certificate-en": certificate(t, money.English, approval(t)), "advice-fr": advice(t, money.French, payout(t))}
	english := payout(t)
	english.Returned = []document.ReturnedPart{{Amount: 50_000, Currency: "XAF", At: paidAt.Add(time.Hour)}}
	english.Agency.Logo = shaded(t)
	out["advice-en"] = advice(t, money.English, english)

	held := approval(t)
	held.Test, held.State, held.HeldSince, held.ReleasedAt, held.ReleasedBy = true, document.StateApproved, paidAt.Add(4*time.Hour), time.Time{}, document.Person{}
	out["certificate-test"] = certificate(t, money.French, held)

	many := approval(t)
	many.ReleasedBy = document.Person{}
	for n := range 32 {
		many.Accounts = append(many.Accounts, document.Total{Name: fmt.Sprintf("compte_%02d", n), Count: 1, Sum: 1})
	}
	for n := range 20 {
		many.Levels[1].Given = append(many.Levels[1].Given, document.Approved{By: person(fmt.Sprintf("Personne numéro %d", n), fmt.Sprint(n)), At: paidAt, Passkey: passkey})
	}
	out["certificate-many"] = certificate(t, money.French, many)

	long := approval(t)
	long.Agency.Name, long.BatchRef = arabic+" Direction "+strings.Repeat("générale ", 60), strings.Repeat("R", 140)
	long.Sum, long.Levels[0].Given[0].By = 1<<53-1, person(arabic+" "+strings.Repeat("W", 140), strings.Repeat("9", 40))
	long.Maker = document.Person{ID: "<script>alert(1)</script>"}
	out["certificate-hostile"] = certificate(t, money.French, long)

	back := payout(t)
	back.ReturnedAt, back.Decided = paidAt.Add(26*time.Hour), true
	out["advice-returned"] = advice(t, money.French, back)
	back.Test = true
	out["advice-returned-en"] = advice(t, money.English, back)

	hostile := payout(t)
	hostile.Payee, hostile.Purpose, hostile.LineRef = strings.Repeat("W", 140), "<b>"+arabic+"</b> "+strings.Repeat("objet ", 24), strings.Repeat("=", 140)
	hostile.BatchRef, hostile.OperatorRef, hostile.Amount = strings.Repeat("R", 140), strings.Repeat("9", 140), 1<<53-1
	out["advice-hostile"] = advice(t, money.French, hostile)
	return out
}

// What is printed of papers of batches, in both languages. None names a payee on a certificate.
var batchSays = map[string][]string{
	"certificate-fr": {
		"Certificat d’approbation d’un lot de paiements", "537 750 000 FCFA", "cinq cent trente-sept millions sept cent cinquante mille francs CFA", "salaries-2026-11", "Révision 2", "Mode Réel", "30 novembre 2026", "2150",
		"mtn_payout, 2000 lignes 500 000 000 FCFA", "Ama Okemba (M-1)", "Niveau 1 : rôle chief", "Ben Ngoma (M-2)", "Le 23 novembre 2026 à 11:30", "5f70bf18 a0860070", "À la place de Dan Itoua (M-4)", "Mis en paiement par Rita Moukala (M-5)",
		"État au 24 novembre 2026 à 16:30", "Terminé", "Payées, 2147 lignes 537 000 000 FCFA", "Retournées, 1 ligne 250 000 FCFA", "0b14d501 a594442a", "Version des règles 3", "Vérifier ce certificat",
	},
	"certificate-en": {
		"Approval certificate of a payment batch", "FCFA 537,750,000", "five hundred and thirty-seven million", "Mode Live", "30 November 2026", "Approved by Ben Ngoma (M-2)", "Level 2: role director, approvals needed: 1", "Paid, 2147 lines FCFA 537,000,000", "Passkey 5f70bf18",
	},
	"certificate-test":    {"TEST", "sans valeur", "suspendu depuis le 23 novembre 2026 à 14:30", "Mode Test", "Approuvé, suspendu", "n’est pas encore mis en paiement"},
	"certificate-many":    {"compte_31, 1 ligne", "Personne numéro 19 (19)", "à la date de paiement, selon les règles", "Vérifier ce certificat"},
	"certificate-hostile": {"[…] evil […]", "9 007 199 254 740 991 FCFA", "<script>alert(1)</script>", "RRRRRRRR", "WWWW", "[…] remplace"},
	"advice-fr": {
		"Avis de versement", "PAYÉ", "250 000 FCFA", "deux cent cinquante mille francs CFA", "Versé par Direction générale des impôts", "Bénéficiaire Ngoma Jean-Baptiste", "Compte ou numéro •••• 0001", "Salaire de novembre 2026", "Payé le 23 novembre 2026 à 10:30",
		"QD0A1B2C3D4E5F6G7H8J9K0MNP", "23503452", "AGENT-001", "salaries-2026-11", "Ligne 17 du lot salaries-2026-11, révision 2", "Vérifier cet avis",
	},
	"advice-en":          {"Payment advice", "PAID", "Payee Ngoma Jean-Baptiste", "Paid on 23 November 2026, 10:30", "A part of the money, FCFA 50,000, came back"},
	"advice-returned":    {"RETOURNÉ", "revenue à l’administration le 24 novembre 2026 à 12:30", "Paiement constaté le", "Retourné le 24 novembre 2026 à 12:30"},
	"advice-returned-en": {"RETURNED", "TEST", "without value", "came back to the agency on 24 November 2026, 12:30"},
	"advice-hostile":     {"WWWW", "<b>[…] evil […]</b> objet", "9 007 199 254 740 991 FCFA", "[…] remplace"},
}

func BenchmarkAdvice(b *testing.B) {
	a, err := document.NewAdvice(money.French, payout(b))
	if err != nil {
		b.Fatal(err)
	}
	at := sealed(b, true, batchseal.Claims{Kind: batchseal.KindAdvice, LineRef: "AGENT-001", PayoutRef: "QD0A1B2C3D4E5F6G7H8J9K0MNP"})
	for b.Loop() {
		if _, err := papers.AdvicePDF(a, at); err != nil {
			b.Fatal(err)
		}
	}
}
