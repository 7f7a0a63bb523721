import SluicePluginKit

@c func sluice_plugin_type() -> PluginExport { PluginMain.export(FrontDesk.self) }

/// Functions and logins of a test's app.
final class FrontDesk: FunctionHandler, LoginHandler, AsksGateway {
    static let name = "FrontDesk"
    static let version = "1.0"
    static let configKeys: [String: ConfigKey]? = ["chiefs": ConfigKey(.list(of: .text))]

    private var chiefs: Set<String> = []
    private var gateway: PluginGateway?

    init(log: PluginLog) {}

    func connect(to gateway: PluginGateway) { self.gateway = gateway }

    func configure(_ app: AppConfiguration) throws -> [String] {
        chiefs = Set((app.config["chiefs"]?.array ?? []).compactMap(\.string))
        return []
    }

    func callFunction(_ call: PluginFunctionCall) throws -> PluginValue {
        gateway?.count("calls")
        switch call.function {
        case "add", "addAsSystem":
            guard !call.arguments.isEmpty else { throw PluginDenial("There is nothing to add.") }
            let sum = call.arguments.reduce(0) { $0 + Int64($1.number ?? 0) }
            return [
                "sum": ["$numberLong": .string("\(sum)")], "user": call.user.map { .string($0.id) } ?? .null, "as": .string(call.runAs),
            ]
        case "isChief": return .bool(call.arguments.first?.string.map(chiefs.contains) ?? false)
        case "fail": throw PluginError("The disk /secret/place of FrontDesk is full.")
        case "crash": fatalError("as it was asked to")
        case "hang": while true {}
        default: throw PluginDenial("It has no such function.")
        }
    }

    func authenticate(payload: PluginValue, requestID: String) throws -> PluginIdentity {
        guard let badge = payload["badge"]?.string, !badge.hasPrefix("guest-") else { throw PluginDenial("Show a badge.") }
        return PluginIdentity(id: badge, name: "Bearer of \(badge)")
    }
}
