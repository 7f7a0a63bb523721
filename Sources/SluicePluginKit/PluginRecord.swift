/// Something to be kept in a stream outside of the database, such as an entry of an audit trail.
///
/// A plugin's process reaches nothing outside, so the gateway does it: it appends the records of an answer to the Kafka topics
/// `<app>.records.<stream>`, and what they belong to goes on only when the brokers have them all. A record may come twice.
public struct PluginRecord: Hashable, Sendable {
    /// Letters, digits, `-` and `_`.
    public var stream: String
    /// Records of one key keep their order; nil: in any order.
    public var key: String?
    public var record: PluginValue

    public init(stream: String, key: String? = nil, record: PluginValue) {
        self.stream = stream
        self.key = key
        self.record = record
    }
}

/// Write rules that also keep records of what they saw.
public protocol RecordingWriteRules: WriteRules {
    /// Called after `checkWrites`, with its verdicts.
    func records(user: PluginUser, writes: [PluginWrite], verdicts: [WriteVerdict]) throws -> [PluginRecord]
}

extension PluginRecord {
    init(_ value: PluginValue) throws(MalformedInput) {
        self.init(stream: try value.text("stream"), key: value["key"]?.string, record: value["record"] ?? .null)
    }

    var value: PluginValue { ["stream": .string(stream), "key": key.map { .string($0) } ?? .null, "record": record] }
}
