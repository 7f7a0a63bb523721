import Crypto
import FoundationEssentials
package import SluiceCore
import SluiceValues

/// The rights of a request to the admin port.
package enum AdminRole: String, Comparable, Sendable, CaseIterable {
    /// Reads: metrics, the console, lists and explanations.
    case read
    /// Reads and changes.
    case change

    package static func < (left: AdminRole, right: AdminRole) -> Bool { left == .read && right == .change }
}

/// A token of the admin port. A gateway needs only its hash.
package struct AdminToken: Hashable, Sendable {
    package var name: String
    package var role: AdminRole
    /// The SHA-256 of the token's text.
    package var hash: [UInt8]
    /// The text, if the configuration holds it.
    package var secret: String?

    /// Creates a token.
    ///
    /// - Throws: `configInvalid` for an invalid name.
    package static func make(name: String, role: AdminRole) throws(SluiceError) -> AdminToken {
        guard isName(name) else {
            throw SluiceError(.configInvalid, "'\(name.prefix(80))' is not a token name.", fix: "Use 1 to 64 letters, digits, '-', '_'.")
        }
        let random = SymmetricKey(size: .bits256).withUnsafeBytes { Base64.encode(Array($0)) }
        let secret = "sluice_" + random.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        return AdminToken(name: name, role: role, hash: hash(of: secret), secret: secret)
    }

    /// The line for a gateway's token file, with the hash.
    package var line: String { "\(role.rawValue) \(name) \(Self.hashPrefix)\(Hex.encode(hash))" }

    private static let hashPrefix = "sha256:"

    static func hash(of secret: String) -> [UInt8] { Array(SHA256.hash(data: Array(secret.utf8))) }

    /// Parses a line: `ROLE NAME TOKEN`, `ROLE NAME sha256:HASH`, or a token alone, which has the role `change`.
    ///
    /// - Parameter place: The file or variable and the line, for errors.
    /// - Returns: nil for a comment or an empty line.
    /// - Throws: `configInvalid` with the place and the reason, without the token.
    fileprivate static func parse(_ line: Substring, at place: String) throws(SluiceError) -> AdminToken? {
        let words = line.split(whereSeparator: \.isWhitespace)
        guard let first = words.first, !first.hasPrefix("#") else { return nil }
        guard words.count != 1 else { return try AdminToken(name: "admin", role: .change, text: first, at: place) }
        guard words.count == 3 else { throw invalid(place, "it has \(words.count) words, not 'ROLE NAME TOKEN'") }
        guard let role = AdminRole(rawValue: String(first)) else { throw invalid(place, "its role is neither 'read' nor 'change'") }
        guard isName(words[1]) else { throw invalid(place, "its name is not 1 to 64 letters, digits, '-' and '_'") }
        return try AdminToken(name: String(words[1]), role: role, text: words[2], at: place)
    }

    private static func invalid(_ place: String, _ reason: String) -> SluiceError {
        SluiceError(.configInvalid, "\(place): this is not an admin token: \(reason).", fix: "Create one with sluice admin-token.")
    }

    private init(name: String, role: AdminRole, text: Substring, at place: String) throws(SluiceError) {
        self.name = name
        self.role = role
        if text.hasPrefix(Self.hashPrefix) {
            guard let hash = Hex.decode(text.dropFirst(Self.hashPrefix.count)), hash.count == SHA256.byteCount else {
                throw Self.invalid(place, "its hash is not 64 hexadecimal digits")
            }
            self.hash = hash
        } else {
            guard Limits.adminTokenCharacters.contains(text.utf8.count) else {
                throw Self.invalid(place, "its token has \(text.utf8.count) bytes, not \(Limits.adminTokenCharacters)")
            }
            hash = Self.hash(of: String(text))
            secret = String(text)
        }
    }

    private init(name: String, role: AdminRole, hash: [UInt8], secret: String?) {
        self.name = name
        self.role = role
        self.hash = hash
        self.secret = secret
    }

    private static func isName(_ name: some StringProtocol) -> Bool {
        (1...64).contains(name.utf8.count)
            && name.utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x41...0x5A).contains($0 & 0xDF) || $0 == 0x2D || $0 == 0x5F
            }
    }
}

/// The tokens of an admin port, from a file or the environment.
package struct AdminTokens: Hashable, Sendable {
    package private(set) var all: [AdminToken]

    package init(_ all: [AdminToken] = []) { self.all = all }

    /// Reads the file, or else the file in `SLUICE_ADMIN_TOKEN_FILE`, or else the text in `SLUICE_ADMIN_TOKEN`.
    ///
    /// - Throws: `configMissing` if the file cannot be read; `configInvalid` with the line.
    package static func read(file: String?, environment: ProcessEnvironment = ProcessEnvironment()) throws(SluiceError) -> AdminTokens {
        let file = file ?? environment["SLUICE_ADMIN_TOKEN_FILE"].flatMap { $0.isEmpty ? nil : $0 }
        guard let file else {
            guard let text = environment["SLUICE_ADMIN_TOKEN"], !text.isEmpty else { return AdminTokens() }
            return try parse(text, of: "SLUICE_ADMIN_TOKEN")
        }
        guard let text = try? String(contentsOfFile: file, encoding: .utf8) else {
            throw SluiceError(.configMissing, "The file of admin tokens \(file) cannot be read.", fix: "Name a readable file.")
        }
        return try parse(text, of: file)
    }

    /// - Parameter place: The file or variable, for errors.
    package static func parse(_ text: String, of place: String) throws(SluiceError) -> AdminTokens {
        var all: [AdminToken] = []
        for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            if let token = try AdminToken.parse(line, at: "\(place):\(number + 1)") { all.append(token) }
        }
        guard (1...Limits.adminTokens).contains(all.count), Set(all.map(\.name)).count == all.count else {
            throw SluiceError(
                .configInvalid, "\(place) has \(all.count) admin tokens, or two of one name.",
                fix: "Give 1 to \(Limits.adminTokens) tokens, each with a name of its own.")
        }
        return AdminTokens(all)
    }

    /// Returns the token with this text. The time does not depend on the position of the first difference.
    func token(of text: String) -> AdminToken? {
        let hash = SymmetricKey(data: AdminToken.hash(of: text))
        var found: AdminToken?
        // No early exit: each hash is compared.
        for token in all where SymmetricKey(data: token.hash) == hash { found = token }
        return found
    }
}
