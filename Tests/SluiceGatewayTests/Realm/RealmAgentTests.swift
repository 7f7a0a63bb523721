import SluiceCore
import SluicePipeline
import Testing

@testable import SluiceGateway

@Suite struct `A client's User-Agent` {
    @Test(arguments: [
        ("RealmSync/14.14.0 (Linux Linux 6.1.0 x86_64) driver", RealmAgent.SDK.cpp),
        ("RealmSync/14.14.0 (iOS 17.1) RealmSwift/20.0.3 com.example.javashop", .swift),
        ("RealmSync/10.5.5 (iOS 14.4) RealmObjectiveC/10.7.2 com.example.shop", .swift),
        ("RealmSync/14.12.0 (Android) RealmKotlin/2.3.0", .kotlin),
        ("RealmSync/14.12.0 (Android (arm)) RealmJava/10.19.0", .java),
        ("RealmSync/14.10.0 (Windows) RealmDotNet/12.3.0 Shop", .dotnet),
        ("RealmSync/14.10.0 (Node) RealmJavaScript/12.14.0", .javascript),
        ("RealmSync/14.10.0 (Node) RealmJS/12.14.0", .javascript),
        ("RealmSync/14.10.0 (Linux Linux 6.1.0 x86_64) RealmJS/12.14.0 (v20.1.0)", .javascript),
        ("RealmSync/14.10.0 (Windows NT (10.0)) RealmDotNet/12.3.0 (.NET 8.0.1) Shop (beta)", .dotnet),
        ("RealmSync/14.12.0 (Android) RealmKotlin/2.3.0 :) Shop", .kotlin), ("RealmSync/14.12.0 (Android RealmKotlin/2.3.0", .cpp),
        ("RealmSync/14.10.0 (Fuchsia) RealmDart/20.0.0", .dart),
        ("RealmSync/14.10.0", .cpp), ("RealmSync/14.10.0 (Linux)", .cpp), ("curl/8.5 (x) RealmSwift/1", .other), ("", .other),
    ])
    func `names the SDK`(header: String, sdk: RealmAgent.SDK) {
        #expect(RealmAgent(header).sdk == sdk)
    }

    @Test(arguments: [
        ("RealmSync/14.14.0 (Linux Linux 6.1.0 x86_64) driver", "14.14.0", "", "driver"),
        ("RealmSync/14.14.0 (iOS 17.1) RealmSwift/20.0.3 com.example.shop 1.4", "14.14.0", "RealmSwift/20.0.3", "com.example.shop 1.4"),
        ("RealmSync/14.10.0 (Node) RealmJS/12.14.0 (v20.1.0)", "14.10.0", "RealmJS/12.14.0", ""),
        ("RealmSync/14.10.0 (NT (10.0)) RealmDotNet/12.3.0 (.NET 8.0.1) Shop (beta)", "14.10.0", "RealmDotNet/12.3.0", "Shop (beta)"),
        ("RealmSync/14.12.0 (Android) RealmKotlin/2.3.0 :) Shop", "14.12.0", "RealmKotlin/2.3.0", ":) Shop"),
        ("RealmSync/14.12.0 (Android) RealmKotlin/2.3.0 (open", "14.12.0", "RealmKotlin/2.3.0", "(open"),
        ("RealmSync/14.12.0 (Android RealmKotlin/2.3.0", "14.12.0", "", ""), ("RealmSync/14.10.0", "14.10.0", "", ""),
        ("RealmSync/", "", "", ""), ("curl/8.5 (x) RealmSwift/1 shop", "", "", ""), ("", "", "", ""),
    ])
    func `names the releases and the app`(header: String, core: String, binding: String, app: String) {
        let agent = RealmAgent(header)
        #expect(agent.core == core && agent.binding == binding && agent.app == app, "\(agent)")
    }

    @Test func `is cut, and loses characters that a line of the log may not have`() {
        let agent = RealmAgent("RealmSync/1 (x)\r\n\u{1b}[31m é" + String(repeating: "a", count: 1_000))
        #expect(agent.text.hasPrefix("RealmSync/1 (x)[31m aaa"))
        #expect(agent.text.utf8.count <= ClientText.bytes)
        #expect(RealmAgent(nil).text.isEmpty && RealmAgent(nil).sdk == .other)
    }
}
