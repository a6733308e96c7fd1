import java.io.FileInputStream;
import org.verapdf.gf.foundry.VeraGreenfieldFoundryProvider;
import org.verapdf.pdfa.Foundries;
import org.verapdf.pdfa.PDFAParser;
import org.verapdf.pdfa.flavours.PDFAFlavour;
import org.verapdf.pdfa.results.TestAssertion;
import org.verapdf.pdfa.results.ValidationResult;

/** Check FILE… prints for each file whether it is PDF/A-2b, and which rules it breaks. */
public class Check {
    public static void main(String[] files) throws Exception {
        VeraGreenfieldFoundryProvider.initialise();
        PDFAFlavour flavour = PDFAFlavour.PDFA_2_B;
        for (String file : files) {
            try (PDFAParser parser = Foundries.defaultInstance().createParser(new FileInputStream(file), flavour)) {
                ValidationResult result = Foundries.defaultInstance().createValidator(flavour, false).validate(parser);
                System.out.println((result.isCompliant() ? "compliant " : "faulty ") + file);
                for (TestAssertion a : result.getTestAssertions()) {
                    System.out.println("  " + a.getRuleId().getClause() + ": " + a.getMessage());
                }
            }
        }
    }
}
