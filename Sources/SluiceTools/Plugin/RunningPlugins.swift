package import SluiceValues

/// Formats the answer of the admin route `plugins` for `sluice plugin running`.
package enum RunningPlugins {
    /// Returns the lines of one generation of plugins.
    package static func lines(_ generation: JSON) -> [String] {
        let plugins = generation["plugins"]?.array ?? []
        let head = "generation \(generation["generation"]?.int ?? 0), \(generation["in_use"] == true ? "in use" : "ending")"
        return [plugins.isEmpty ? "\(head): no plugins" : head] + plugins.flatMap(describe)
    }

    private static func describe(_ plugin: JSON) -> [String] {
        func count(_ key: String) -> Int64 { plugin[key]?.int ?? 0 }
        let name = [plugin["name"]?.string ?? plugin["file"]?.string, plugin["version"]?.string].compactMap { $0 }.joined(separator: " ")
        let place = plugin["in_process"] == true ? "in process" : plugin["process"]?.int.map { "process \($0)" } ?? "no process"
        var lines = [
            "    \(name): \(plugin["state"]?.string ?? "unknown"), \(place); \(count("calls")) calls, \(count("denied")) denied, "
                + "\(count("failures")) failed; \(count("hosts_ended")) processes ended"
        ]
        if let error = plugin["last_error"], let text = error["error"]?.string {
            lines.append("        \(error["seconds_ago"]?.int ?? 0) s ago: \(text) (\(error["code"]?.int ?? 0))")
        }
        return lines
    }
}
