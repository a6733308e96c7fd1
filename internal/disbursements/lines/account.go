package lines

import (
	"fmt"
	"strconv"
	"strings"
)

// ibanLengths are the lengths of IBANs by country: those of the IBAN registry (ISO 13616), and 27 in the states of CEMAC,
// whose IBAN is the RIB behind country and check digits.
const ibanLengths = "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24 FI18 FK18 " +
	"FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 " +
	"ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 " +
	"TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30 " + cemac

// cemac are the states whose accounts have a RIB of 23 digits.
const cemac = "CF27 CG27 CM27 GA27 GQ27 TD27"

// CheckIBAN says what is wrong with an IBAN in capitals without spaces; the zero values if nothing is.
func CheckIBAN(iban string) (kind FaultKind, want string) {
	if len(iban) < 5 || strings.Trim(iban[:2], capitals) != "" || strings.Trim(iban[2:4], digits) != "" || strings.Trim(iban[4:], capitals+digits) != "" {
		return FaultIBAN, ""
	}
	_, rest, known := strings.Cut(ibanLengths, iban[:2])
	if !known {
		return FaultIBANCountry, iban[:2]
	}
	if length, _ := strconv.Atoi(rest[:2]); len(iban) != length {
		return FaultIBANLength, rest[:2]
	}
	if check := iban[2:4]; mod97(iban[4:]+iban[:4]) != 1 || check < "02" || check > "98" {
		return FaultIBANCheck, ""
	}
	if strings.Contains(cemac, iban[:2]) {
		return CheckRIB(iban[4:])
	}
	return "", ""
}

const (
	digits    = "0123456789"
	capitals  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	ribLength = 5 + 5 + 11 + 2 // bank, branch, account, key
)

// CheckRIB says what is wrong with a RIB of CEMAC without spaces. Its key is 97 − (89 bank + 15 branch + 3 account) mod
// 97. The factors are the powers of ten of the three parts in the whole number, modulo 97.
func CheckRIB(rib string) (kind FaultKind, want string) {
	switch {
	case strings.Trim(rib, digits) != "":
		return FaultRIB, ""
	case len(rib) == ribLength-1:
		return FaultZeroLost, ""
	case len(rib) != ribLength:
		return FaultRIB, ""
	case rib[ribLength-2:] != fmt.Sprintf("%02d", 97-mod97(rib[:ribLength-2]+"00")):
		return FaultRIBKey, ""
	}
	return "", ""
}

// mod97 returns a number modulo 97. A letter stands for two digits, from 10 for A.
func mod97(text string) int {
	n := 0
	for _, c := range []byte(text) {
		if c >= 'A' {
			n = (n*100 + int(c-'A') + 10) % 97
		} else {
			n = (n*10 + int(c-'0')) % 97
		}
	}
	return n
}
