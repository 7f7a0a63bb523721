import SluiceCore
import Testing

@Suite struct `A witness` {
    @Test(arguments: [
        Witness(transaction: 3, commitTime: 0), Witness(transaction: .max, commitTime: .min, lsn: LSN(rawValue: .max)),
        Witness(transaction: 0x0102_0304, commitTime: 1_700_000_000_123_456, lsn: LSN(rawValue: 0x1_2345_6789)),
    ])
    func `is what its bytes say`(witness: Witness) {
        #expect(witness.bytes.count == 20 && Witness(witness.bytes) == witness)
    }

    @Test func `is not made of anything else`() {
        let bytes = Witness(transaction: 700, commitTime: 1).bytes
        for wrong in [[], Array(bytes.dropLast()), bytes + [0], Witness(transaction: 2, commitTime: 1).bytes] {
            #expect(Witness(wrong) == nil)
        }
    }
}
