/// A record for a stream outside the database, such as an entry of an audit trail.
///
/// A plugin's process has no access to the network, so the gateway appends the records to the Kafka topics `<app>.records.<stream>`. The
/// writes that they belong to proceed only when the brokers have acknowledged all records. A record may be stored twice.
public struct PluginRecord: Hashable, Sendable {
    /// The name of the stream: letters, digits, `-` and `_`.
    public var stream: String
    /// Records of one key keep their order. Nil for any order.
    public var key: String?
    /// The content of the record: any JSON.
    public var record: PluginValue

    public init(stream: String, key: String? = nil, record: PluginValue) {
        self.stream = stream
        self.key = key
        self.record = record
    }
}

/// Write rules that also record the writes that they check.
public protocol RecordingWriteRules: WriteRules {
    /// Returns the records to append. The gateway calls it after `checkWrites`, with its verdicts.
    func records(user: PluginUser, writes: [PluginWrite], verdicts: [WriteVerdict]) throws -> [PluginRecord]
}

extension PluginRecord {
    init(_ value: PluginValue) throws(PluginError) {
        self.init(stream: try value.text("stream"), key: value["key"]?.string, record: value["record"] ?? .null)
    }

    var value: PluginValue { ["stream": .string(stream), "key": key.map { .string($0) } ?? .null, "record": record] }
}
