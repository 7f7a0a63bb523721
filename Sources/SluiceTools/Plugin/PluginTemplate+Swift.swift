/// The files of a plugin in Swift. Every user may read and write their own objects, but not transfer them.
enum PluginTemplateSwift {
    static let files = [
        "Package.swift": manifest, "README.md": readme, "exports.map": PluginTemplateC.exports,
        "Sources/PLUGIN_NAME/PLUGIN_NAME.swift": rules,
        "Tests/PLUGIN_NAMETests/PLUGIN_NAMETests.swift": tests,
    ]

    private static let manifest = """
        // swift-tools-version: 6.2
        import PackageDescription

        let package = Package(
            name: "PLUGIN_NAME",
            products: [.library(name: "PLUGIN_NAME", type: .dynamic, targets: ["PLUGIN_NAME"])],
            dependencies: [.package(SLUICE_PACKAGE)],
            targets: [
                .target(
                    name: "PLUGIN_NAME",
                    dependencies: [.product(name: "SluicePluginKit", package: "SLUICE_PACKAGE_NAME")],
                    linkerSettings: [
                        // A missing symbol is an error of the build. Only the entry is exported.
                        .unsafeFlags([
                            "-Xlinker", "-z", "-Xlinker", "defs",
                            "-Xlinker", "--version-script=\\(Context.packageDirectory)/exports.map",
                        ])
                    ]
                ),
                .testTarget(name: "PLUGIN_NAMETests", dependencies: ["PLUGIN_NAME"]),
            ],
            swiftLanguageModes: [.v6]
        )

        """

    private static let rules = #"""
        import SluicePluginKit

        @c func sluice_plugin_type() -> PluginExport { PluginMain.export(PLUGIN_NAME.self) }

        /// Users read and write the objects that they own. They cannot give an object away.
        final class PLUGIN_NAME: SessionRules, WriteRules, FunctionHandler {
            static let name = "PLUGIN_NAME"
            static let version = "0.1"
            static let configKeys: [String: ConfigKey]? = [
                "owner_field": ConfigKey(.text, help: "The field with the id of an object's owner; owner_id unless given.")
            ]

            private var app = AppConfiguration()

            init(log: PluginLog) {}

            func configure(_ app: AppConfiguration) throws -> [String] {
                self.app = app
                return []
            }

            private var field: String { app.config["owner_field"]?.string ?? "owner_id" }

            func openSession(user: PluginUser, types: [String]) throws -> [String: TypeRules] {
                guard user.id.allSatisfy({ $0.isLetter || $0.isNumber || $0 == "-" }) else { throw PluginDenial("an id of another kind") }
                var plan: [String: TypeRules] = [:]
                // A type that is left out is denied.
                for type in types where app.isQueryable(field, of: type) {
                    let own = "\(field) == '\(user.id)'"
                    plan[type] = TypeRules(read: own, write: own, insert: true, delete: true, role: "owner", checkWrite: true)
                }
                return plan
            }

            func checkWrites(user: PluginUser, writes: [PluginWrite]) throws -> [WriteVerdict] {
                writes.map { write in
                    guard let before = write.before, let after = write.after else { return .allow }
                    return after.hasSame(field, as: before) ? .allow : .deny(reason: "An object keeps its owner.")
                }
            }

            /// Runs the functions of the app that have the target "plugin:PLUGIN_NAME" in sluice.json.
            func callFunction(_ call: PluginFunctionCall) throws -> PluginValue {
                switch call.function {
                case "ownerField": return .string(field)
                default: throw PluginDenial("There is no such function.")
                }
            }
        }

        """#

    private static let tests = #"""
        import SluicePluginKit
        import Testing

        @testable import PLUGIN_NAME

        @Suite struct `The rules of PLUGIN_NAME` {
            @Test func `lets everybody see what is their own`() throws {
                let rules = try TestedPlugin(PLUGIN_NAME.self, app: AppConfiguration(queryableFields: ["owner_id"]))
                let plan = try rules.openSession(PluginUser(id: "ann"), types: ["Task"])
                #expect(plan["Task"]?.read == "owner_id == 'ann'")
            }

            @Test func `keeps it theirs`() throws {
                let rules = try TestedPlugin(PLUGIN_NAME.self)
                func given(to owner: String) -> PluginWrite {
                    PluginWrite(
                        type: "Task", operation: "update", before: ["_id": 1, "owner_id": "ann"], after: ["_id": 1, "owner_id": .string(owner)])
                }
                let verdicts = try rules.checkWrites(PluginUser(id: "ann"), [given(to: "ann"), given(to: "bob")]).verdicts
                #expect(verdicts == [.allow, .deny(reason: "An object keeps its owner.")])
            }

            @Test func `runs a function`() throws {
                let rules = try TestedPlugin(PLUGIN_NAME.self)
                #expect(try rules.callFunction(PluginFunctionCall("ownerField", user: PluginUser(id: "ann"))) == "owner_id")
                #expect(throws: PluginDenial.self) { try rules.callFunction(PluginFunctionCall("another")) }
            }
        }

        """#

    private static let readme = """
        # PLUGIN_NAME: a rule plugin

        Users read and write the objects that they own. They cannot give an object away. `owner_field` of its configuration names the field with the
        owner's id, which has to be queryable.

        The plugin also runs a function of the app, `ownerField`. `sluice.json` of the app directory names the plugin for it:

        ```json
        { "functions": { "ownerField": { "url": "plugin:PLUGIN_NAME" } } }
        ```

        ```sh
        swift test                                                            # its rules, without a gateway
        swift build -c release -Xswiftc -static-stdlib --product PLUGIN_NAME  # with a Swift runtime of its own
        sluice plugin check .build/release/libPLUGIN_NAME.so                  # tries it as a gateway does
        sluice plugin add --app ../app .build/release/libPLUGIN_NAME.so       # lists it, which has gateways load it
        ```

        """
}
