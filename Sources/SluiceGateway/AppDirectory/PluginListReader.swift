import FoundationEssentials
package import SluiceCore
import SluicePluginHost
package import SluiceValues

/// Reads `plugins.json`: the plugins of an app, the digests of their files, and their configurations.
package struct PluginListReader {
    package static let file = "plugins.json"
    let list: ProblemList

    /// Returns the entries of an app directory's list as they stand in the file. A missing file has none.
    ///
    /// - Throws: The first problem, with file and line.
    package static func entries(of directory: String) throws(SluiceError) -> [JSON] {
        let path = "\(directory)/\(file)"
        guard FileManager.default.fileExists(atPath: path) else { return [] }
        let problems = ProblemList()
        guard let text = AppDirectory.text(of: path, named: file, problems) else {
            throw problems.problems.first?.error ?? SluiceError(.configInvalid, "\(path) is not a file.")
        }
        let json: JSON
        do throws(JSONError) { json = try JSON.located(Array(text.utf8)) } catch {
            throw SluiceError(.badJSON, "\(path):\(error.line):\(error.column): this is not valid JSON: \(error.problem).")
        }
        _ = PluginListReader(list: problems).read(ConfigNode(file: file, json: json, list: problems))
        if let problem = problems.problems.first { throw problem.error }
        return json["plugins"]?.array ?? []
    }

    func read(_ node: ConfigNode) -> [AppConfiguration.ListedPlugin] {
        let members = node.members(allowing: ["plugins"])
        let plugins = members.required("plugins", of: node)?.elements.compactMap(plugin) ?? []
        var seen: Set<String> = []
        for plugin in plugins where !seen.insert(plugin.file).inserted {
            node.problem("'\(plugin.file)' is listed twice.", fix: "Remove one of them.")
        }
        return plugins
    }

    private func plugin(_ node: ConfigNode) -> AppConfiguration.ListedPlugin? {
        let members = node.members(allowing: ["file", "sha256", "signature", "config", "in_process", "deadline_ms", "memory_mb"])
        guard let file = members.required("file", of: node)?.string else { return nil }
        var plugin = AppConfiguration.ListedPlugin(file: file, config: members["config"]?.json ?? .null, isInProcess: false)
        if file.split(separator: "/").contains("..") {
            members["file"]?.problem("'\(file)' leads out of the app directory by '..'.", fix: "Give an absolute path, or one inside.")
        }
        plugin.sha256 = members["sha256"].flatMap(digest)
        if members["sha256"] == nil, !plugin.isShipped {
            node.problem("'sha256' is missing for '\(file)'.", fix: "Run `sluice plugin add`, which writes it.", code: .configMissing)
        }
        plugin.signature = members["signature"].flatMap(signature)
        plugin.isInProcess = members["in_process"]?.bool ?? false
        if let node = members["deadline_ms"] { (plugin.deadline, plugin.deadlines) = deadlines(node) }
        plugin.memoryBytes = members["memory_mb"]?.number(in: 16...1 << 20).map { UInt64($0) << 20 }
        return plugin
    }

    private static let hooks: [Hook] = [.openSession, .checkSubscription, .checkWrite, .ingest, .userChanged]

    /// Returns a time limit for all hooks, or the limits of single hooks from an object.
    private func deadlines(_ node: ConfigNode) -> (UInt64?, [Hook: UInt64]) {
        guard node.json.members != nil else { return (nanoseconds(node), [:]) }
        let members = node.members(allowing: Self.hooks.map(\.name))
        let pairs = Self.hooks.compactMap { hook in members[hook.name].flatMap(nanoseconds).map { (hook, $0) } }
        return (nil, Dictionary(uniqueKeysWithValues: pairs))
    }

    private func nanoseconds(_ node: ConfigNode) -> UInt64? { node.number(in: 1...60_000).map { UInt64($0) * 1_000_000 } }

    private func digest(_ node: ConfigNode) -> String? {
        guard let text = node.string?.lowercased() else { return nil }
        if text.utf8.count == 64, text.utf8.allSatisfy({ (48...57).contains($0) || (97...102).contains($0) }) { return text }
        node.problem("This is not a SHA-256, which has 64 hexadecimal digits.", fix: "Run `sluice plugin add`, which writes it.")
        return nil
    }

    private func signature(_ node: ConfigNode) -> [UInt8]? {
        guard let text = node.string else { return nil }
        if let bytes = Base64.decode(text), bytes.count == 64 { return bytes }
        node.problem(
            "This is not an Ed25519 signature, which has 64 bytes in base64.", fix: "Run `sluice plugin add --sign`, which writes it.")
        return nil
    }
}
