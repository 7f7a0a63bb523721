import Foundation

/// The description of the machine that a run measures on.
enum Machine {
    static var description: String {
        let info = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)) ?? ""
        let model = info.split(separator: "\n").first { $0.hasPrefix("model name") }?.split(separator: ":").last ?? "unknown CPU"
        let load = (try? String(contentsOfFile: "/proc/loadavg", encoding: .utf8))?.split(separator: " ").prefix(3).joined(separator: " ")
        let cores = ProcessInfo.processInfo.activeProcessorCount
        let memory = Double(ProcessInfo.processInfo.physicalMemory) / Double(1 << 30)
        let date = ISO8601DateFormatter().string(from: Date())
        return "\(cores) cores, \(model.trimmingCharacters(in: .whitespaces)), \(memory.text()) GiB, "
            + "\(ProcessInfo.processInfo.operatingSystemVersionString), \(date), load average \(load ?? "unknown") at the start"
    }
}
