import Testing

@testable import SluiceSDK

@Suite struct `The address of a server` {
    @Test(arguments: [
        "http://sync.example.com", "HTTP://Sync.Example.com:8090/", "http://192.168.1.4:8090", "http://127.evil.example",
        "http://localhost.example", "http://[2001:db8::1]:80",
    ])
    func `without TLS on another machine is warned of`(url: String) { #expect(ServerAddress.isOpenToOthers(url)) }

    @Test(arguments: [
        "https://sync.example.com", "http://127.0.0.1:8090", "http://127.1.2.3", "http://localhost:8090", "http://[::1]:8090",
        "http://app.localhost", "", "sync.example.com", "ftp://sync.example.com",
    ])
    func `with TLS, on this machine or of another kind is not`(url: String) { #expect(!ServerAddress.isOpenToOthers(url)) }
}
