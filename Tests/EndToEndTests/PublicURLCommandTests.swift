import Foundation
import Testing

@Suite(.timeLimit(.minutes(5))) struct `sluice serve --public-url` {
    private static let app = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Examples/AirportOps/app").standardized.path

    @Test(arguments: ["sync.example.com", "wss://sync.example.com", "https://sync.example.com/path"])
    func `refuses what is no URL of a host at once, and names it`(url: String) async throws {
        let arguments = ["serve", "--app", Self.app, "--postgres", "host=127.0.0.1 port=1", "--port", "0", "--admin-port", "0"]
        let program = try Program("sluice", arguments + ["--public-url", url])
        #expect(await program.end(within: 20) == .exit(78), "\(program.said)")
        #expect(program.said.contains("config-invalid (901): The public URL '\(url)' is not"), "\(program.said)")
    }
}
