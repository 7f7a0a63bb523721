/// The judgement of the files and folders that a gateway's options name: facts in, findings out.
package struct FileFindings: Sendable {
    /// A file with secrets, or a folder that the gateway writes into.
    package struct Fact: Hashable, Sendable {
        package enum Use: Hashable, Sendable {
            /// Read by the gateway; holds secrets.
            case secret
            /// The folder of a socket.
            case folder
        }

        package var path: String
        /// The option or variable that names it.
        package var option: String
        package var use: Use
        /// The permission bits; nil if it does not exist.
        package var mode: UInt32?
        /// `true` if this user may use it: read a file, write into a folder.
        package var isAccessible: Bool
        /// The free bytes of a folder's file system; nil if unknown.
        package var freeBytes: Int64?

        package init(path: String, option: String, use: Use, mode: UInt32?, isAccessible: Bool, freeBytes: Int64? = nil) {
            self.path = path
            self.option = option
            self.use = use
            self.mode = mode
            self.isAccessible = isAccessible
            self.freeBytes = freeBytes
        }
    }

    package var facts: [Fact]

    /// The free space below which there is a warning, in bytes.
    static let freeBytes: Int64 = 64 << 20

    package init(_ facts: [Fact]) { self.facts = facts }

    package var findings: [CheckFinding] { facts.flatMap(findings) }

    private func findings(_ fact: Fact) -> [CheckFinding] {
        switch fact.use {
        case .secret: secret(fact).map { [$0] } ?? []
        case .folder: folder(fact)
        }
    }

    private func secret(_ fact: Fact) -> CheckFinding? {
        // Reading the file has reported that it is missing.
        guard let mode = fact.mode, mode & 0o077 != 0 else { return nil }
        let octal = String(mode & 0o777, radix: 8)
        return CheckFinding(
            .warning, .files, fact.path, "The file \(fact.path) of \(fact.option) has the mode \(octal): other users can use its secrets.",
            commands: ["chmod 600 \(ShellText.word(fact.path))"], repair: .restrict(path: fact.path))
    }

    private func folder(_ fact: Fact) -> [CheckFinding] {
        guard fact.mode != nil else {
            return [
                CheckFinding(
                    .error, .files, fact.path, "The folder \(fact.path) of \(fact.option) does not exist.",
                    commands: ["mkdir -p -m 700 \(ShellText.word(fact.path))"], repair: .folder(path: fact.path))
            ]
        }
        guard fact.isAccessible else {
            return [
                CheckFinding(
                    .error, .files, fact.path, "The folder \(fact.path) of \(fact.option) cannot be written to.",
                    fix: "Change its owner or mode, or name another path.")
            ]
        }
        guard let free = fact.freeBytes, free < Self.freeBytes else { return [] }
        return [
            CheckFinding(
                .warning, .files, fact.path, "The file system of \(fact.path) has \(free >> 20) MiB left.", fix: "Free some space.")
        ]
    }
}
