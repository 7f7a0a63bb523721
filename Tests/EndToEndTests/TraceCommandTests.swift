import Foundation
import Testing

@Suite(.timeLimit(.minutes(5))) struct `sluice serve --trace-collector` {
    private static let app = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Examples/AirportOps/app").standardized.path

    private static let wrong: [(options: [String], environment: [String: String])] = [
        (["--trace-collector", "ftp://user:hunter2@host"], [:]), ([], ["SLUICE_TRACE_COLLECTOR": "http://user:hunter2@host"]),
    ]

    @Test(arguments: wrong)
    func `refuses what is no URL at once, and does not repeat it`(options: [String], environment: [String: String]) async throws {
        let arguments = ["serve", "--app", Self.app, "--postgres", "host=127.0.0.1 port=1", "--port", "0", "--admin-port", "0"]
        let program = try Program("sluice", arguments + options, environment: environment)
        #expect(await program.end(within: 20) == .exit(78), "\(program.said)")
        #expect(program.said.contains("config-invalid (901): The collector of traces is no http or https URL"), "\(program.said)")
        #expect(!program.said.contains("hunter2"))
    }
}
