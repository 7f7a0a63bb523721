import Foundation

extension LocalSocket {
    /// Describes the sockets on a port of this machine and their processes, for the message of a test that does not get the port. Linux.
    package static func holders(of port: Int) -> String {
        let suffix = ":" + String(format: "%04X", port)
        let table = (try? String(contentsOfFile: "/proc/net/tcp", encoding: .utf8)) ?? ""
        let found = table.split(separator: "\n").dropFirst().compactMap { line -> String? in
            let fields = line.split(separator: " ")
            guard fields.count > 9, fields[1].hasSuffix(suffix) else { return nil }
            return "state \(fields[3]), \(processes(of: fields[9]))"
        }
        return found.isEmpty ? "no socket has it now" : found.joined(separator: "; ")
    }

    private static func processes(of inode: Substring) -> String {
        let manager = FileManager.default
        let ids = ((try? manager.contentsOfDirectory(atPath: "/proc")) ?? []).filter { Int($0) != nil }
        let holders = ids.filter { id in
            let descriptors = (try? manager.contentsOfDirectory(atPath: "/proc/\(id)/fd")) ?? []
            return descriptors.contains { (try? manager.destinationOfSymbolicLink(atPath: "/proc/\(id)/fd/\($0)")) == "socket:[\(inode)]" }
        }
        return holders.isEmpty ? "no process" : holders.map { "process \($0): \(command(of: $0))" }.joined(separator: ", ")
    }

    private static func command(of id: String) -> String {
        let bytes = FileManager.default.contents(atPath: "/proc/\(id)/cmdline") ?? Data()
        return String(decoding: bytes.map { $0 == 0 ? UInt8(ascii: " ") : $0 }.prefix(200), as: UTF8.self)
    }
}
