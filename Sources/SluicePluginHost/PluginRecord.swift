package import SluiceCore

/// A record that a plugin stores in a stream outside of the database.
package struct PluginRecord: Hashable, Sendable {
    package var plugin: String
    package var stream: String
    /// The ordering key; records with equal keys keep their order.
    package var key: String?
    package var record: JSON

    /// A destination that rejects all records, for gateways without one.
    /// - Throws: `configMissing`.
    package static let nowhere: @Sendable ([PluginRecord]) async throws(SluiceError) -> Void = { (records) async throws(SluiceError) in
        throw SluiceError(.configMissing, "\(records[0].plugin) writes records, but no store for them is configured.")
    }
}

extension HookCoding {
    /// Decodes the records of an answer of check_write or ingest.
    /// - Throws: `pluginBadAnswer`.
    static func records(_ answer: Answer) throws(SluiceError) -> [PluginRecord] {
        guard let json = answer.json["records"], json != .null else { return [] }
        guard let list = json.array else { throw answer.bad("\"records\" is no list") }
        var records: [PluginRecord] = []
        for (index, record) in list.enumerated() {
            let place = "records[\(index)]"
            try answer.allow(["stream", "key", "record"], in: record, at: place)
            let stream = try answer.text(record, "stream", at: place)
            guard (1...100).contains(stream.utf8.count), stream.utf8.allSatisfy(isOfName) else {
                throw answer.bad("\(place).stream is no name: letters, digits, - and _")
            }
            records.append(
                PluginRecord(plugin: answer.plugin, stream: stream, key: record["key"]?.string, record: record["record"] ?? .null))
        }
        return records
    }

    private static func isOfName(_ byte: UInt8) -> Bool {
        byte == 45 || byte == 95 || (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
    }
}
