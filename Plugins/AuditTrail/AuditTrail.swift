import SluicePluginKit

@c func sluice_plugin_type() -> PluginExport { PluginMain.export(AuditTrail.self) }

/// Records every write in a Kafka topic: the user, the object, and its images before and after.
///
/// A write proceeds only when the brokers have acknowledged its record.
final class AuditTrail: SessionRules, RecordingWriteRules {
    static let name = "AuditTrail"
    static let version = "1.0"
    static let configKeys: [String: ConfigKey]? = [
        "types": ConfigKey(.list(of: .text), help: "Classes whose writes are recorded. Default: all."),
        "stream": ConfigKey(.text, help: "The stream. The topic is <app>.records.<stream>. Default: audit."),
        "images": ConfigKey(.bool, help: "true if records have the object before and after. Default: true."),
    ]

    private var types: Set<String>?
    private var stream = "audit"
    private var hasImages = true
    private var keys: [String: String] = [:]

    init(log: PluginLog) {}

    func configure(_ app: AppConfiguration) throws -> [String] {
        types = app.config["types"]?.array.map { Set($0.compactMap(\.string)) }
        stream = app.config["stream"]?.string ?? "audit"
        hasImages = app.config["images"]?.bool ?? true
        keys = app.schema.compactMapValues(\.primaryKey)
        return (types ?? []).filter { app.schema[$0] == nil }.sorted().map { "types: the app has no type \"\($0)\"" }
    }

    func openSession(user: PluginUser, types: [String]) throws -> [String: TypeRules] {
        var plan: [String: TypeRules] = [:]
        for type in types {
            plan[type] = TypeRules(
                read: "TRUEPREDICATE", write: "TRUEPREDICATE", insert: true, delete: true, role: "audited", checkWrite: isRecorded(type),
                grants: false)
        }
        return plan
    }

    func checkWrites(user: PluginUser, writes: [PluginWrite]) throws -> [WriteVerdict] { writes.map { _ in .allow } }

    func records(user: PluginUser, writes: [PluginWrite], verdicts: [WriteVerdict]) throws -> [PluginRecord] {
        writes.filter { isRecorded($0.type) }.map { write in
            let id = (write.after ?? write.before)?[keys[write.type] ?? "_id"] ?? .null
            var record: PluginValue = [
                "user": .string(user.id), "type": .string(write.type), "operation": .string(write.operation), "id": id,
            ]
            if hasImages {
                record.set("before", to: write.before?.value ?? .null)
                record.set("after", to: write.after?.value ?? .null)
            }
            return PluginRecord(stream: stream, key: "\(write.type) \(id.json)", record: record)
        }
    }

    private func isRecorded(_ type: String) -> Bool { types.map { $0.contains(type) } ?? true }
}
