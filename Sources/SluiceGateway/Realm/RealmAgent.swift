import SluicePipeline

/// The SDK and the app of a client of Realm's protocol, as its User-Agent names them.
///
/// The header has the form `RealmSync/14.14.0 (Linux 6.1.0 x86_64) RealmSwift/20.0.3 com.example.app`. Clients choose the text, so it is
/// only shown, and cut to `ClientText.bytes`.
struct RealmAgent: Hashable, Sendable {
    /// The SDKs that metrics distinguish.
    enum SDK: String, CaseIterable, Sendable {
        case swift, kotlin, java, dotnet, javascript, dart, cpp, other
    }

    /// The header's printable ASCII characters.
    let text: String
    let sdk: SDK
    /// The release of realm-core, such as `14.14.0`; empty if the header has none.
    let core: String
    /// The SDK's name and release, such as `RealmSwift/20.0.3`; empty if the header has none.
    let binding: String
    /// The app, as the SDK describes it; empty if the header has none.
    let app: String

    /// - Parameter header: The header User-Agent; nil if it is missing.
    init(_ header: String?) {
        text = ClientText.printable(header ?? "")
        guard text.lowercased().hasPrefix(Self.prefix) else {
            (sdk, core, binding, app) = (.other, "", "", "")
            return
        }
        core = String(text.dropFirst(Self.prefix.count).prefix { $0 != " " })
        // The binding is the first word behind the platform. Without one, the program uses the engine itself.
        let rest = (Self.behindParentheses(text[...]) ?? "").drop { $0 == " " }
        let word = rest.prefix { $0 != " " }
        let lower = word.lowercased()
        guard let name = Self.names.first(where: { lower.contains($0.name) }) else {
            (sdk, binding, app) = (.cpp, "", String(rest))
            return
        }
        (sdk, binding) = (name.sdk, String(word))
        let behind = rest.dropFirst(word.count).drop { $0 == " " }
        // Some SDKs describe their platform behind the binding: `RealmJS/12.14.0 (v20.1.0)`.
        app = String((behind.first == "(" ? Self.behindParentheses(behind) ?? behind : behind).drop { $0 == " " })
    }

    private static let prefix = "realmsync/"

    /// Returns the text behind the first parentheses, which may contain others; nil if they do not end.
    private static func behindParentheses(_ text: Substring) -> Substring? {
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
    private static let names: [(name: String, sdk: SDK)] = [
        ("swift", .swift), ("objectivec", .swift), ("kotlin", .kotlin), ("javascript", .javascript), ("realmjs", .javascript),
        ("java", .java), ("dotnet", .dotnet), ("dart", .dart), ("flutter", .dart),
    ]
}
