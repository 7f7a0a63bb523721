package import SluiceCore
import SluiceValues

/// The secrets of an app by name: texts of `secrets.json`, and the environment variables and files that `sluice.json` names.
package struct AppSecrets: Hashable, Sendable {
    /// The place of a secret.
    package enum Source: Hashable, Sendable {
        /// The text itself, from `secrets.json`.
        case text(String)
        /// An environment variable of the gateway.
        case environment(String)
        /// The path of a file. A line end at its end does not count.
        case file(String)
    }

    static let file = "secrets.json"

    private var sources: [String: Source]

    package init(_ sources: [String: Source] = [:]) { self.sources = sources }

    package func has(_ name: String) -> Bool { sources[name] != nil }

    /// Returns the text of a secret. Reads a file, so it is for the start of a gateway.
    ///
    /// - Throws: `configMissing` if there is no such secret or its text is empty; `configInvalid` if its file cannot be read.
    package func text(of name: String, in environment: ProcessEnvironment) throws(SluiceError) -> String {
        let text: String?
        switch sources[name] {
        case .text(let own): text = own
        case .environment(let variable): text = environment[variable]
        case .file(let path): text = try ProcessEnvironment.text(ofSecretFile: path, named: "the secret '\(name)' of \(OperatorFile.name)")
        case nil:
            throw SluiceError(
                .configMissing, "There is no secret '\(name)'.",
                fix: #"Name its place in sluice.json: {"secrets": {"\#(name)": {"environment": "VARIABLE"}}}, or {"file": "PATH"}."#)
        }
        if let text, !text.isEmpty { return text }
        throw SluiceError(.configMissing, "The secret '\(name)' is empty\(place(of: name)).", fix: "Set it, and restart the gateway.")
    }

    private func place(of name: String) -> String {
        if case .environment(let variable) = sources[name] { return ": the environment variable \(variable) is not set" }
        return ""
    }
}

/// Reads `secrets` of `sluice.json`, and `secrets.json`.
struct SecretReader {
    let list: ProblemList

    /// - Parameters:
    ///   - node: The member `secrets` of `sluice.json`.
    ///   - texts: The content of `secrets.json`. A name of `sluice.json` has precedence.
    func read(_ node: ConfigNode?, texts: JSON?) -> AppSecrets {
        var sources: [String: AppSecrets.Source] = [:]
        for member in texts?.members ?? [] { sources[member.key] = member.value.string.map { .text($0) } }
        for (name, place) in node?.members ?? [] { sources[name] = source(place) ?? sources[name] }
        return AppSecrets(sources)
    }

    private func source(_ node: ConfigNode) -> AppSecrets.Source? {
        let members = node.members(allowing: ["environment", "file"])
        switch (members["environment"]?.string, members["file"]?.string) {
        case (let variable?, nil): return .environment(variable)
        case (nil, let path?): return .file(path)
        default:
            node.problem(
                "\(node.name) names no place, or two.", fix: #"Write {"environment": "VARIABLE"} or {"file": "PATH"}."#,
                code: .configMissing)
            return nil
        }
    }
}
