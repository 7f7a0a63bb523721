import Foundation
import SluiceSDK
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// A login while the server takes its time.
@Suite struct IdleLoginTests {
    /// Answers the first request of each connection after a second, by 401.
    private static func slowServer() throws -> Int {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, size) == 0 && getsockname(listener, $0, &size) == 0
            }
        }
        guard isBound, listen(listener, 8) == 0 else { throw CocoaError(.fileReadUnknown) }
        Thread.detachNewThread {
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else { return }
                var bytes = [UInt8](repeating: 0, count: 4_096)
                _ = read(connection, &bytes, bytes.count)
                // The time for which the login waits. A client that spins uses it up.
                Thread.sleep(forTimeInterval: 1)
                let answer = Array("HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}".utf8)
                _ = write(connection, answer, answer.count)
                close(connection)
            }
        }
        return Int(UInt16(bigEndian: address.sin_port))
    }

    private static var switches: Int {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return usage.ru_nvcsw + usage.ru_nivcsw
    }

    /// In a process of its own, whose context switches are those of the login.
    @Test func `costs no processor time while it waits`() async {
        await #expect(processExitsWith: .success) {
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent("idle-\(UUID().uuidString)")
            let app = App(
                id: "shop", configuration: AppConfiguration(baseURL: "http://127.0.0.1:\(try Self.slowServer())", storageDirectory: folder))
            let before = Self.switches
            do {
                _ = try await app.login(credentials: .emailPassword(email: "a@example.com", password: "password"))
                fatalError("the server refuses")
            } catch let error as AppError {
                // Spinning makes 60,000 a second.
                precondition(Self.switches - before < 5_000, "\(Self.switches - before) context switches: \(error)")
            }
            try? FileManager.default.removeItem(at: folder)
        }
    }
}
