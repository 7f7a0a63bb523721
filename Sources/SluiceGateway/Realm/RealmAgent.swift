/// The SDK and the app of a client of Realm's protocol, as its User-Agent names them.
///
/// The header has the form `RealmSync/14.14.0 (Linux 6.1.0 x86_64) RealmSwift/20.0.3 com.example.app`. Clients choose the text, so it is
/// only shown, and cut to `Self.bytes`.
struct RealmAgent: Hashable, Sendable {
    /// The SDKs that metrics distinguish.
    enum SDK: String, CaseIterable, Sendable {
        case swift, kotlin, java, dotnet, javascript, dart, cpp, other
    }

    /// The maximum bytes of the text that is kept.
    static let bytes = 256

    /// The header's printable ASCII characters.
    let text: String
    let sdk: SDK

    /// - Parameter header: The header User-Agent; nil if it is missing.
    init(_ header: String?) {
        let kept = (header ?? "").utf8.prefix(Self.bytes).filter { (0x20...0x7e).contains($0) }
        text = String(decoding: kept, as: UTF8.self)
        sdk = Self.sdk(in: text.lowercased())
    }

    private static func sdk(in text: String) -> SDK {
        guard text.hasPrefix("realmsync/") else { return .other }
        // The binding is the first word behind the platform. Without one, the program uses the engine itself.
        guard let rest = behindPlatform(text), let binding = rest.split(separator: " ").first else { return .cpp }
        return names.first { binding.contains($0.name) }?.sdk ?? .cpp
    }

    /// Returns the text behind the first parentheses, which may contain others; nil if they do not end.
    ///
    /// Some SDKs put their own parentheses behind the binding: `RealmJS/12.14.0 (v20.1.0)`.
    private static func behindPlatform(_ text: String) -> Substring? {
        var depth = 0
        for index in text.indices {
            switch text[index] {
            case "(": depth += 1
            case ")" where depth == 1: return text[text.index(after: index)...]
            case ")" where depth > 1: depth -= 1
            default: break
            }
        }
        return nil
    }

    /// The names in order, as `javascript` contains `java`.
    private static let names: [(name: Substring, sdk: SDK)] = [
        ("swift", .swift), ("objectivec", .swift), ("kotlin", .kotlin), ("javascript", .javascript), ("realmjs", .javascript),
        ("java", .java), ("dotnet", .dotnet), ("dart", .dart), ("flutter", .dart),
    ]
}
