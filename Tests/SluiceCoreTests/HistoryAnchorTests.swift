import SluiceCore
import Testing

@Suite struct `A witness` {
    @Test(arguments: [
        HistoryAnchor(transaction: 3, commitTime: 0), HistoryAnchor(transaction: .max, commitTime: .min, lsn: LSN(rawValue: .max)),
        HistoryAnchor(transaction: 0x0102_0304, commitTime: 1_700_000_000_123_456, lsn: LSN(rawValue: 0x1_2345_6789)),
    ])
    func `is what its bytes say`(witness: HistoryAnchor) {
        #expect(witness.bytes.count == 20 && HistoryAnchor(witness.bytes) == witness)
    }

    @Test func `is not made of anything else`() {
        let bytes = HistoryAnchor(transaction: 700, commitTime: 1).bytes
        for wrong in [[], Array(bytes.dropLast()), bytes + [0], HistoryAnchor(transaction: 2, commitTime: 1).bytes] {
            #expect(HistoryAnchor(wrong) == nil)
        }
    }
}
