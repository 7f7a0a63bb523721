import Foundation
import SluiceCore
import SluiceGateway
import Testing

@Suite struct `A variable with a secret` {
    @Test(arguments: [("secret", "secret"), ("secret\n", "secret"), ("secret\r\n", "secret"), ("se cret \n\n", "se cret \n"), ("", "")])
    func `has the content of its file, without the line end`(content: String, secret: String) throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "sluice-secret-\(UUID())").path()
        try Data(content.utf8).write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect(try ProcessEnvironment(["SLUICE_POSTGRES_FILE": path]).secret("SLUICE_POSTGRES") == secret)
        // An empty variable counts as none.
        #expect(try ProcessEnvironment(["SLUICE_POSTGRES_FILE": path, "SLUICE_POSTGRES": ""]).secret("SLUICE_POSTGRES") == secret)
        #expect(try ProcessEnvironment(["SLUICE_POSTGRES_FILE": "", "SLUICE_POSTGRES": "own"]).secret("SLUICE_POSTGRES") == "own")
        #expect(try ProcessEnvironment([:]).secret("SLUICE_POSTGRES") == nil)
    }

    @Test func `is refused with a file beside it, and with one that cannot be read`() throws {
        let path = "/nowhere/secret"
        let both = #expect(throws: SluiceError.self) {
            try ProcessEnvironment(["SLUICE_POSTGRES_FILE": path, "SLUICE_POSTGRES": "own"]).secret("SLUICE_POSTGRES")
        }
        #expect(both?.code == .configInvalid && both?.message.contains("own") == false)
        let missing = #expect(throws: SluiceError.self) {
            try ProcessEnvironment(["SLUICE_POSTGRES_FILE": path]).secret("SLUICE_POSTGRES")
        }
        #expect(missing?.code == .configInvalid && missing?.message.contains(path) == true)
    }
}
