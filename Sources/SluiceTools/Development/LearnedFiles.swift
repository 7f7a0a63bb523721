import Dispatch
import FoundationEssentials
package import SluiceCore
package import SluiceGateway
import Synchronization

/// Writes the classes that development mode learns into an app directory: `sluice dev --learn`.
///
/// It writes the files of new and grown classes. It writes `sync/config.json` and the file that names the app only if they are missing when
/// it starts.
package final class LearnedFiles: Sendable {
    private let directory: String
    private let source: String
    private let ownsSync: Bool
    /// Written one after another, on a thread of its own.
    private let queue = DispatchQueue(label: "sluice.learn")
    /// The newest record that is to be written; nil for none. It has all that earlier ones have, so one that comes meanwhile replaces it.
    private let waiting = Mutex<AppSchemaRecord?>(nil)
    /// The classes as written last.
    private let known: Mutex<[String: ObjectType]>

    /// - Parameters:
    ///   - app: The app at the start. Its classes are not written until they grow.
    /// - Throws: `configInvalid` if the directory cannot be written.
    package init(directory: String, app: AppConfiguration) throws(SluiceError) {
        self.directory = directory
        let manager = FileManager.default
        let sources = ((try? manager.contentsOfDirectory(atPath: "\(directory)/data_sources")) ?? []).filter { !$0.hasPrefix(".") }
        source = sources.count == 1 ? sources[0] : "mongodb-atlas"
        ownsSync = !manager.fileExists(atPath: "\(directory)/sync/config.json")
        known = Mutex(Dictionary(app.schema.types.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first }))
        if !AppFiles.main.contains(where: { manager.fileExists(atPath: "\(directory)/\($0)") }) {
            try Self.write("{ \"app_id\": \"\(app.appID)\", \"name\": \"\(app.name)\" }\n", to: "\(directory)/realm_config.json")
        }
    }

    /// Writes what the record has beyond the last one. Returns at once.
    package func learn(_ record: AppSchemaRecord) {
        let isFirst = waiting.withLock { waiting in
            defer { waiting = record }
            return waiting == nil
        }
        if isFirst { queue.async { self.writeWaiting() } }
    }

    private func writeWaiting() {
        guard let record = waiting.withLock({ $0.take() }) else { return }
        do throws(SluiceError) { try write(record) } catch { StandardError.write("sluice: \(error)\n") }
    }

    /// Waits until everything is written.
    package func finish() { queue.sync {} }

    private func write(_ record: AppSchemaRecord) throws(SluiceError) {
        let changed = known.withLock { known in
            let types = record.schema.types.filter { type in
                known[type.name].map { $0.kind != type.kind || $0.properties.map(\.name) != type.properties.map(\.name) } ?? true
            }
            for type in types { known[type.name] = type }
            return Set(types.map(\.name))
        }
        let files = SchemaFiles(record, source: source)
        if ownsSync { try Self.write(files.sync, to: "\(directory)/sync/config.json") }
        // A class whose embedded class has grown has another file as well.
        for type in record.schema.types where changed.contains(type.name) || record.schema.uses(changed, from: type) {
            for (path, text) in files.files(of: type.name) { try Self.write(text, to: "\(directory)/\(path)") }
        }
    }

    private static func write(_ text: String, to file: String) throws(SluiceError) {
        let folder = file.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
        do {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try Data(text.utf8).write(to: URL(filePath: file), options: .atomic)
        } catch {
            throw SluiceError(
                .configInvalid, "The file \(file) cannot be written.",
                fix: "Check its permissions, or name another directory with --learn.",
                cause: ErrorCause(error))
        }
    }
}

extension Schema {
    /// `true` if a class contains one of the named embedded classes, at any depth.
    fileprivate func uses(_ names: Set<String>, from type: ObjectType) -> Bool {
        var seen: Set<String> = []
        var open = [type]
        while let next = open.popLast() {
            for case .embedded(let name) in next.properties.map(\.type) where seen.insert(name).inserted {
                if names.contains(name) { return true }
                if let inner = self[name] { open.append(inner) }
            }
        }
        return false
    }
}
