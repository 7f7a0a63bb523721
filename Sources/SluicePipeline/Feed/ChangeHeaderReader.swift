import SluiceCore
import SluicePorts
import SluiceWire

/// Reads the fields of a change record that ordering needs: its position, its predecessor and its transaction.
struct ChangeHeaderReader {
    struct Header {
        var position: Position
        var previous: Position?
        var xid: UInt32
    }

    private let codec = ChangeRecordCodec(Schema([]))

    /// Returns the header; nil if the record is malformed.
    func read(_ bytes: ArraySlice<UInt8>) -> Header? {
        bytes.withUnsafeBytes { buffer in
            guard let view = try? codec.decode(buffer) else { return nil }
            return Header(position: view.position, previous: view.previous, xid: view.xid)
        }
    }
}
