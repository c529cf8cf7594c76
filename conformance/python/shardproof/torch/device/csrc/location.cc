#include "location.h"

#include <Python.h>
#include <frameobject.h>

#include <string_view>
#include <unordered_map>
#include <vector>

namespace shardproof::device {
namespace {

// Never freed: frames may be looked at while the process ends.
struct Files {
  std::vector<std::string> libraries;
  std::string python;
  std::string current;
  std::unordered_map<PyCodeObject*, std::string>
      names;  // empty: of a library; the key is kept alive
};
Files& TheFiles() {
  static auto* files = new Files;
  return *files;
}

bool Begins(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

std::string NameOf(PyCodeObject* code) {
  const Files& files = TheFiles();
  const char* path = PyUnicode_AsUTF8(code->co_filename);
  if (path == nullptr) {
    PyErr_Clear();
    return "";
  }
  if (path[0] == '<') return "";  // <string>, <frozen runpy>: no file
  for (const std::string& folder : files.libraries) {
    if (Begins(path, folder)) return "";
  }
  const std::string_view packages = "/site-packages/";
  const std::string_view text = path;
  if (const auto at = text.find(packages); at != std::string_view::npos) {
    return std::string(text.substr(at + packages.size()));
  }
  if (Begins(text, files.python)) return "";
  if (Begins(text, files.current)) return std::string(text.substr(files.current.size()));
  return std::string(text);
}

const std::string& CachedName(PyCodeObject* code) {
  auto& names = TheFiles().names;
  const auto found = names.find(code);
  if (found != names.end()) return found->second;
  Py_INCREF(code);
  return names.emplace(code, NameOf(code)).first->second;
}

}  // namespace

void SetLibraryFolders(const std::string& own, const std::string& torch, const std::string& python,
                       const std::string& current) {
  TheFiles().libraries = {own, torch};
  TheFiles().python = python;
  TheFiles().current = current;
}

std::string ProgramLine() {
  if (!Py_IsInitialized() || _Py_IsFinalizing()) return "";
  const PyGILState_STATE state = PyGILState_Ensure();
  std::string line;
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame != nullptr) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const std::string& name = CachedName(code);
    Py_DECREF(code);
    if (!name.empty()) {
      line = name + ":" + std::to_string(PyFrame_GetLineNumber(frame));
      Py_DECREF(frame);
      break;
    }
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  PyGILState_Release(state);
  return line;
}

}  // namespace shardproof::device
