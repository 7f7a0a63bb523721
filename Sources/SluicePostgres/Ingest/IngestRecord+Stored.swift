import SluiceCore
import SluicePorts

extension IngestRecord {
    /// The source: `topic/partition`, `device/USER/CLIENT`, or `direct`.
    var origin: String { partition.map { "\($0.topic)/\($0.partition)" } ?? sender ?? "direct" }
    /// The object as printable text that PostgreSQL can store.
    var text: String { StoreText.printable(String(decoding: bytes, as: UTF8.self)) }
    /// Returns the bytes if `text` does not represent them exactly, else nil.
    func kept(beside text: String) -> ArraySlice<UInt8>? { text.utf8.elementsEqual(bytes) ? nil : bytes }
}
