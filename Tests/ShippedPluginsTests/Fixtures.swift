import Foundation
import Glibc
import Logging
import SluiceCore
import SluicePluginHost
import SluicePorts
import SluiceValues
import Synchronization

/// Plugins as the build put them beside the test bundle, each in a host of its own.
enum Shipped {
    /// `SLUICE_TEST_PLUGIN_HOST` is the folder of another build, such as one with a sanitizer (`dev/asan`).
    static let folder: String = {
        if let folder = ProcessInfo.processInfo.environment["SLUICE_TEST_PLUGIN_HOST"] { return folder }
        var buffer = [CChar](repeating: 0, count: 4_096)
        let count = readlink("/proc/self/exe", &buffer, buffer.count - 1)
        let path = String(decoding: buffer.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return path.split(separator: "/").dropLast().map { "/" + $0 }.joined()
    }()

    static let schema = Schema([
        ObjectType(
            name: "Patient",
            properties: [
                Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "name", type: .string, isOptional: true),
                Property(id: 3, name: "ssn", type: .string, isOptional: true),
            ]),
        ObjectType(
            name: "Visit",
            properties: [Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "closed", type: .bool, isOptional: true)]),
    ])
    static let types = ["Patient", "Visit"]

    /// Starts a chain of one plugin, configured, for as long as the body runs.
    static func with<R>(
        _ name: String, _ config: String, records: Records = Records(), _ body: (PluginChain) async throws -> R
    ) async throws -> R {
        let spec = PluginSpec(
            path: "\(folder)/lib\(name).so", config: try JSON.parse(Array(config.utf8)), configFile: "plugins.json",
            deadline: 30_000_000_000)
        let chain = PluginChain(
            plugins: [spec], hostExecutable: "\(folder)/sluice-plugin-host",
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            keep: { (new) async throws(SluiceError) in try records.keep(new) })
        do {
            try await chain.start()
            try await chain.configure(
                app: AppDescription.json(appID: "test", directory: [:], schema: schema, queryableFields: QueryableFields()))
            let result = try await body(chain)
            await chain.stop()
            return result
        } catch {
            await chain.stop()
            throw error
        }
    }

    static func user(_ id: String, _ customData: JSON = [:]) -> UserContext {
        UserContext(id: id, customData: customData)
    }

    static func insert(_ key: String, _ type: String = "Patient") -> ProposedWrite {
        ProposedWrite(type: schema[type]!, operation: .insert, before: nil, after: ["_id": .string(key)])
    }

    /// A visit that is closed, or not, before and after.
    static func visit(_ before: Bool?, _ after: Bool?) -> ProposedWrite {
        func row(_ closed: Bool?) -> [String: Value]? { closed.map { ["_id": .string("v"), "closed": .bool($0)] } }
        let operation: SluiceCore.Operation = before == nil ? .insert : after == nil ? .delete : .update
        return ProposedWrite(type: schema["Visit"]!, operation: operation, before: row(before), after: row(after))
    }

    static func update(_ key: String, _ type: String = "Patient") -> ProposedWrite {
        ProposedWrite(type: schema[type]!, operation: .update, before: ["_id": .string(key)], after: ["_id": .string(key)])
    }
}

/// What plugins wanted kept.
final class Records: Sendable {
    private let state = Mutex((kept: [PluginRecord](), isBroken: false))

    var kept: [PluginRecord] { state.withLock { $0.kept } }
    func breakDown() { state.withLock { $0.isBroken = true } }

    func keep(_ records: [PluginRecord]) throws(SluiceError) {
        let isBroken = state.withLock { state in
            if !state.isBroken { state.kept += records }
            return state.isBroken
        }
        if isBroken { throw SluiceError(.logUnreachable, "the brokers are away") }
    }
}
