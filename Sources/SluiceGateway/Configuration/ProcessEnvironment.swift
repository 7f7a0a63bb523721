import Foundation
package import SluiceCore

#if canImport(Glibc)
    import Glibc
#endif

/// The environment variables of the process, or others in their place.
package struct ProcessEnvironment: Sendable {
    private let variables: [String: String]?

    package init(_ variables: [String: String]? = nil) { self.variables = variables }

    package subscript(_ name: String) -> String? {
        if let variables { return variables[name] }
        return getenv(name).map { String(cString: $0) }
    }

    /// Returns a variable that may be a secret: its value, or the content of the file that the variable `<name>_FILE` names, without the
    /// line end at its end. An empty variable counts as none.
    ///
    /// - Throws: `configInvalid` if both are set, or if the file cannot be read.
    package func secret(_ name: String) throws(SluiceError) -> String? {
        let value = self[name].flatMap { $0.isEmpty ? nil : $0 }
        guard let path = self["\(name)_FILE"], !path.isEmpty else { return value }
        guard value == nil else {
            throw SluiceError(.configInvalid, "Both \(name) and \(name)_FILE are set.", fix: "Unset one of them.")
        }
        return try Self.text(ofSecretFile: path, named: "\(name)_FILE")
    }

    /// Returns the content of a file with a secret, without the line end at its end.
    ///
    /// - Parameter name: The setting that names the file.
    /// - Throws: `configInvalid` if the file cannot be read.
    static func text(ofSecretFile path: String, named name: String) throws(SluiceError) -> String {
        guard let data = FileManager.default.contents(atPath: path), let text = String(data: data, encoding: .utf8) else {
            throw SluiceError(
                .configInvalid, "The file \(path), which \(name) names, cannot be read as a text.",
                fix: "Correct the path, or let this user read the file.")
        }
        // A line end is one character, with a carriage return or without.
        return text.last?.isNewline == true ? String(text.dropLast()) : text
    }
}
