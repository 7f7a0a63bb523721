import FoundationEssentials
package import SluiceCore
import SluiceGateway
package import SluiceValues

/// Makes a flexible app of a partition-based one: `sluice migrate partitions`.
///
/// The partition key becomes the indexed queryable field, and the permissions become the default role.
package struct PartitionMigration: Sendable {
    /// The largest source of a function, in bytes.
    private static let functionBytes = 1 << 20

    /// The files that change by path: the text before and after; nil before for a new file.
    package let changes: [FileChange]
    /// The parts with another effect than before, one sentence each.
    package let notes: [String]
    /// The permissions that deny until a role is written by hand, one sentence each.
    package let denied: [String]
    private let root: String

    /// Reads the export. Changes nothing.
    ///
    /// - Throws: `configInvalid` if the export cannot be read, or does not use partition-based sync.
    package init(at root: String) throws(SluiceError) {
        self.root = root
        let files: [String: String]
        do { files = try AppDirectory.files(at: root) } catch {
            throw SluiceError(error.asSluiceError.code, error.problems.map(\.description).joined(separator: "\n"), fix: "")
        }
        var plan = PartitionPlan(try PartitionExport(files: files), functions: Self.functions(at: root))
        plan.make()
        changes = plan.texts.sorted { $0.key < $1.key }.map { FileChange(path: $0.key, before: files[$0.key], after: $0.value) }
            .filter { $0.before != $0.after }
        (notes, denied) = (plan.notes, plan.denied)
    }

    /// Returns the sources of functions by name. In the older layout each has a folder with `source.js`.
    private static func functions(at root: String) -> [String: String] {
        var sources: [String: String] = [:]
        for path in AppDirectory.unservedFiles(at: root).keys where path.hasPrefix("functions/") && path.hasSuffix(".js") {
            let name = path.dropFirst("functions/".count).dropLast(".js".count)
            guard let data = FileManager.default.contents(atPath: "\(root)/\(path)"), data.count <= functionBytes else { continue }
            sources[String(name.hasSuffix("/source") ? name.dropLast("/source".count) : name)] = String(decoding: data, as: UTF8.self)
        }
        return sources
    }

    /// Writes the changed files.
    ///
    /// - Parameter target: A folder that does not exist, for a changed copy of the export; nil for the export itself.
    /// - Throws: `configInvalid` if a file cannot be written.
    package func write(to target: String?) throws(SluiceError) {
        let manager = FileManager.default
        do {
            if let target {
                guard !manager.fileExists(atPath: target) else {
                    throw SluiceError(.configInvalid, "\(target) exists.", fix: "Name a folder that does not exist with --out.")
                }
                let whole = URL(filePath: root, directoryHint: .isDirectory).standardizedFileURL.path
                guard !URL(filePath: target).standardizedFileURL.path.hasPrefix(whole.hasSuffix("/") ? whole : whole + "/") else {
                    throw SluiceError(.configInvalid, "\(target) is inside of \(root).", fix: "Name a folder elsewhere with --out.")
                }
                try manager.copyItem(atPath: root, toPath: target)
            }
            for change in changes {
                let path = "\(target ?? root)/\(change.path)"
                let folder = path[..<(path.lastIndex(of: "/") ?? path.startIndex)]
                try manager.createDirectory(atPath: String(folder), withIntermediateDirectories: true)
                try Data(change.after.utf8).write(to: URL(filePath: path), options: .atomic)
            }
        } catch let error as SluiceError {
            throw error
        } catch {
            throw SluiceError(
                .configInvalid, "The files in \(target ?? root) cannot be written.",
                fix: "Check its permissions, or name a folder with --out.",
                cause: ErrorCause(error))
        }
    }

    /// The proposal for a terminal: the differences, then what to do by hand.
    package var text: String {
        var lines = changes.flatMap(\.lines)
        for note in notes { lines += ["", note] }
        if !denied.isEmpty {
            lines += ["", "These permissions deny everybody until you write a role (roles: Plugins/AppServicesRules/README.md):"]
            lines += denied.map { "  \($0)" }
        }
        return lines.map(TerminalText.shown).joined(separator: "\n")
    }

    package var json: JSON {
        [
            "files": .array(changes.map { ["path": .string($0.path), "isNew": .bool($0.before == nil), "text": .string($0.after)] }),
            "notes": .array(notes.map { .string($0) }), "denied": .array(denied.map { .string($0) }),
        ]
    }
}

/// A changed file with the lines that differ.
package struct FileChange: Hashable, Sendable {
    /// The number of equal lines that are shown around a difference.
    private static let context = 2
    /// The most lines of a file that are compared. A longer one is shown as a whole.
    private static let comparedLines = 5_000

    package var path: String
    package var before: String?
    package var after: String

    /// The differences: removed lines begin with `-`, added ones with `+`.
    var lines: [String] {
        let new = Self.lines(after)
        guard let before else { return ["new file \(path)"] + new.map { "+ \($0)" } }
        let old = Self.lines(before)
        guard old.count + new.count <= Self.comparedLines else { return ["file \(path)"] + new.map { "+ \($0)" } }
        return ["file \(path)"] + Self.differences(old, new)
    }

    private static func lines(_ text: String) -> [Substring] {
        text.split(separator: "\n", omittingEmptySubsequences: false).dropLast(text.hasSuffix("\n") ? 1 : 0)
    }

    private static func differences(_ old: [Substring], _ new: [Substring]) -> [String] {
        let difference = new.difference(from: old)
        let removed = Set(difference.removals.map { change in if case .remove(let offset, _, _) = change { offset } else { -1 } })
        let added = Set(difference.insertions.map { change in if case .insert(let offset, _, _) = change { offset } else { -1 } })
        var marked: [(mark: Character, text: Substring)] = []
        var (left, right) = (0, 0)
        while left < old.count || right < new.count {
            if left < old.count, removed.contains(left) {
                marked.append(("-", old[left]))
                left += 1
            } else if right < new.count, added.contains(right) {
                marked.append(("+", new[right]))
                right += 1
            } else {
                marked.append((" ", new[right]))
                (left, right) = (left + 1, right + 1)
            }
        }
        let near = marked.indices.filter { index in
            marked[max(0, index - context)...min(marked.count - 1, index + context)].contains { $0.mark != " " }
        }
        return near.map { "\(marked[$0].mark) \(marked[$0].text)" }
    }
}
