import com.prowidesoftware.swift.model.mx.AbstractMX;
import com.prowidesoftware.swift.model.mx.MxPain00100103;
import com.prowidesoftware.swift.model.mx.MxPain00100109;
import java.nio.file.Files;
import java.nio.file.Path;

/** Read FILE… prints what Prowide's reader finds in each pain.001: the head, and a line for each group and transfer. */
public class Read {
    public static void main(String[] files) throws Exception {
        for (String file : files) {
            AbstractMX message = AbstractMX.parse(Files.readString(Path.of(file)));
            if (message instanceof MxPain00100109 m) {
                var head = m.getCstmrCdtTrfInitn().getGrpHdr();
                System.out.println(head.getMsgId() + " " + head.getNbOfTxs() + " " + head.getCtrlSum().toPlainString());
                for (var group : m.getCstmrCdtTrfInitn().getPmtInf()) {
                    System.out.println(group.getPmtInfId() + " " + group.getNbOfTxs() + " " + group.getCtrlSum().toPlainString() + " " + group.getReqdExctnDt().getDt() + " " + group.getChrgBr());
                    for (var t : group.getCdtTrfTxInf()) {
                        var id = t.getCdtrAcct().getId();
                        System.out.println(t.getPmtId().getInstrId() + " " + t.getPmtId().getEndToEndId() + " " + t.getAmt().getInstdAmt().getCcy() + " "
                            + t.getAmt().getInstdAmt().getValue().toPlainString() + " " + (id.getIBAN() != null ? id.getIBAN() : id.getOthr().getId()) + " " + t.getCdtr().getNm());
                    }
                }
            } else if (message instanceof MxPain00100103 m) {
                var head = m.getCstmrCdtTrfInitn().getGrpHdr();
                System.out.println(head.getMsgId() + " " + head.getNbOfTxs() + " " + head.getCtrlSum().toPlainString());
                for (var group : m.getCstmrCdtTrfInitn().getPmtInf()) {
                    System.out.println(group.getPmtInfId() + " " + group.getNbOfTxs() + " " + group.getCtrlSum().toPlainString() + " " + group.getReqdExctnDt() + " " + group.getChrgBr());
                    for (var t : group.getCdtTrfTxInf()) {
                        var id = t.getCdtrAcct().getId();
                        System.out.println(t.getPmtId().getInstrId() + " " + t.getPmtId().getEndToEndId() + " " + t.getAmt().getInstdAmt().getCcy() + " "
                            + t.getAmt().getInstdAmt().getValue().toPlainString() + " " + (id.getIBAN() != null ? id.getIBAN() : id.getOthr().getId()) + " " + t.getCdtr().getNm());
                    }
                }
            } else {
                System.out.println("unknown: " + file);
            }
        }
    }
}
