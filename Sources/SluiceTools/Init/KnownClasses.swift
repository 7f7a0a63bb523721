import SluiceCore
import SluiceValues

/// The classes that the files of an app directory name already.
package struct KnownClasses: Sendable {
    /// The class names by table.
    private(set) var names: [AppDraft.Place: String] = [:]
    /// All class names, also those of embedded objects and of other data sources.
    private(set) var taken: Set<String> = []

    /// - Parameter files: The texts by path, as `AppDirectory` reads them. One that is no JSON names no class.
    package init(_ files: [String: String]) {
        for (path, text) in files {
            let parts = path.split(separator: "/").map(String.init)
            guard parts.count == 5, parts[0] == "data_sources", parts[4] == "schema.json", let json = try? JSON.parse(text) else {
                continue
            }
            take(json)
            if parts[1] == InitFiles.source, let name = json["title"]?.string, !name.isEmpty { names[.init(parts[2], parts[3])] = name }
        }
    }

    /// Takes the names of a schema and of those inside.
    private mutating func take(_ json: JSON) {
        if let name = json["title"]?.string { taken.insert(name) }
        for member in json.members ?? [] { take(member.value) }
        for element in json.array ?? [] { take(element) }
    }
}
