import Foundation

/// What the kernel says of processes.
enum ProcessState {
    /// Those that a process has started and not yet waited for, with as much of their names as is kept.
    static func children(of parent: Int32) -> [(id: Int32, name: String)] {
        let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return all.compactMap { Int32($0) }.compactMap { id in
            guard let stat = read(id), stat.parent == parent else { return nil }
            return (id, stat.name)
        }
    }

    /// Whether a process takes no step until it is told to go on.
    static func isStopped(_ id: Int32) -> Bool { read(id)?.state == "T" }

    private static func read(_ id: Int32) -> (name: String, state: Substring, parent: Int32)? {
        guard let text = try? String(contentsOfFile: "/proc/\(id)/stat", encoding: .utf8), let open = text.firstIndex(of: "("),
            let close = text.lastIndex(of: ")")
        else { return nil }
        let fields = text[close...].split(separator: " ")
        guard fields.count > 2, let parent = Int32(fields[2]) else { return nil }
        return (String(text[text.index(after: open)..<close]), fields[1], parent)
    }
}
