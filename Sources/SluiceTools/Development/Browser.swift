import Foundation
import SluiceDevServer

/// Opens a page in the user's browser, for `sluice dev --open`.
package enum Browser {
    /// Returns the program that opens pages; nil if the user has no display, or no such program is installed.
    ///
    /// - Parameters:
    ///   - variable: Returns an environment variable.
    ///   - isExecutable: `true` if the file is a program.
    package static func program(_ variable: (String) -> String?, isExecutable: (String) -> Bool) -> String? {
        #if os(macOS)
            let name = "open"
        #else
            let name = "xdg-open"
            // Without a display xdg-open starts a browser for terminals, which would take this one.
            guard ["DISPLAY", "WAYLAND_DISPLAY"].contains(where: { variable($0)?.isEmpty == false }) else { return nil }
        #endif
        return (variable("PATH") ?? "").split(separator: ":").map { "\($0)/\(name)" }.first(where: isExecutable)
    }

    /// Opens the page, and waits at most 5 s for the program.
    ///
    /// - Returns: The reason for which no page opens; nil if the program has been started.
    static func open(_ url: String) async -> String? {
        let variables = ProcessInfo.processInfo.environment
        guard let program = program({ variables[$0] }, isExecutable: { FileManager.default.isExecutableFile(atPath: $0) }) else {
            return "there is no display, or no program that opens pages"
        }
        do {
            let status = try await ProgramRun.run([program, url], variables, within: .seconds(5))
            return status == nil || status == 0 ? nil : "\(program) failed"
        } catch {
            return "\(program) could not be started"
        }
    }
}
