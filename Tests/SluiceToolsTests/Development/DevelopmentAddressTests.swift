import SluiceNet
import SluiceTools
import Testing

/// The addresses of `sluice dev --host`, and the program of `--open`.
struct DevelopmentAddressTests {
    private static func entries(_ pairs: KeyValuePairs<String, String>) -> [NetworkInterfaces.Entry] {
        pairs.map { .init(name: $0.key, address: $0.value) }
    }

    static let cases: [(interfaces: KeyValuePairs<String, String>, shown: String)] = [
        (["lo": "127.0.0.1", "eth0": "192.168.1.7"], "192.168.1.7"),
        (["lo": "127.0.0.1", "docker0": "172.17.0.1", "wlan0": "10.0.0.9"], "10.0.0.9"),
        (["eth0": "203.0.113.5", "wlan0": "172.31.2.3"], "172.31.2.3"),
        (["eth0": "203.0.113.5", "eth1": "172.32.2.3"], "203.0.113.5"),
        (["docker0": "172.17.0.1"], "172.17.0.1"),
        (["en0": "fe80::1", "en1": "169.254.3.4", "en2": "2001:db8::7"], "2001:db8::7"),
        (["lo": "127.0.0.1", "lo0": "::1"], "127.0.0.1"), ([:], "127.0.0.1"),
    ]

    @Test(arguments: cases.indices, ["0.0.0.0", "::"]) func `a port on all addresses is shown with one that a phone reaches`(
        index: Int, host: String
    ) {
        let (interfaces, shown) = Self.cases[index]
        let address = DevelopmentAddress(host: host, interfaces: Self.entries(interfaces))
        #expect(address.shown == shown && address.isOpen && address.warning?.contains("every device that reaches \(shown)") == true)
        #expect(address.url(port: "8090") == (shown.contains(":") ? "http://[\(shown)]:8090" : "http://\(shown):8090"))
        #expect(!address.names.contains("127.0.0.1") && !address.names.contains("fe80::1"))
    }

    @Test(arguments: [
        ("127.0.0.1", false), ("127.0.0.2", false), ("localhost", false), ("::1", false), ("192.168.1.7", true), ("mac.local", true),
    ])
    func `an address is shown as given, with a warning unless only this machine reaches it`(host: String, isOpen: Bool) {
        let address = DevelopmentAddress(host: host, interfaces: Self.entries(["eth0": "10.1.1.1"]))
        #expect(address.shown == host && address.names == [] && address.isOpen == isOpen && (address.warning != nil) == isOpen)
    }

    @Test(
        arguments: [
            (["DISPLAY": ":0", "PATH": "/a:/b"], "/b/xdg-open"), (["WAYLAND_DISPLAY": "w", "PATH": "/b"], "/b/xdg-open"),
            (["PATH": "/b"], nil), (["DISPLAY": "", "PATH": "/b"], nil), (["DISPLAY": ":0", "PATH": "/a"], nil), (["DISPLAY": ":0"], nil),
        ] as [([String: String], String?)])
    func `a page opens only where there is a display and a program`(variables: [String: String], program: String?) {
        #expect(Browser.program({ variables[$0] }, isExecutable: { $0 == "/b/xdg-open" }) == program)
    }
}
