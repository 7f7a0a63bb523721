/// Runs a program of the user beside this process, without its input and output.
package enum ProgramRun {
    /// Starts the program and waits for its end.
    ///
    /// - Parameters:
    ///   - arguments: The program's path and its arguments.
    ///   - limit: The longest wait. A program that still runs is left alone.
    /// - Returns: The wait status; nil if the program still runs.
    /// - Throws: `internalError` if it cannot be started.
    package static func run(_ arguments: [String], _ environment: [String: String], within limit: Duration) async throws -> Int32? {
        let child = try await ChildProcess.start(
            .init(arguments: arguments, environment: environment.map { "\($0.key)=\($0.value)" }, logPath: "/dev/null"))
        return await child.wait(limit)
    }
}
